package transfer

import (
	"errors"
	"net"
	"os"
	"time"

	"tierbench.io/client/internal/tcpinfo"
)

const glance = 10 * time.Millisecond // between checks of what the server has acknowledged

// uplink is the connection of an upload. Reading and writing fail when the server acknowledges nothing, and sends
// nothing, for `timeout`. The kernel takes far more bytes at once than a slow link carries within that time, so the
// kernel is asked what has arrived. The uplink lies below TLS, which cannot write again after a write has failed.
type uplink struct {
	net.Conn
	tcp          *net.TCPConn
	timeout      time.Duration
	acknowledged int64
	last         time.Time // when something was acknowledged or arrived
	longest      time.Duration
}

func newUplink(conn *net.TCPConn, timeout time.Duration) *uplink {
	made := &uplink{Conn: conn, tcp: conn, timeout: timeout, last: time.Now()}
	_ = conn.SetDeadline(time.Now().Add(glance)) // otherwise the next read or write fails
	return made
}

// Write writes the whole block, unless it fails.
func (u *uplink) Write(block []byte) (int, error) {
	for done := 0; ; {
		number, err := u.Conn.Write(block[done:])
		done += number
		if err == nil || !u.early(err) {
			return done, err
		}
	}
}

// Read reads what has arrived.
func (u *uplink) Read(into []byte) (int, error) {
	for {
		number, err := u.Conn.Read(into)
		if number > 0 {
			u.progress()
			return number, nil
		}
		if err == nil || !u.early(err) {
			return number, err
		}
	}
}

// early reports whether a deadline fired before the timeout had passed without progress, and then moves it.
func (u *uplink) early(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	if now := tcpinfo.Acknowledged(u.tcp); now != u.acknowledged {
		u.acknowledged = now
		u.progress()
	}
	left := time.Until(u.last.Add(u.timeout))
	return left > 0 && u.SetDeadline(time.Now().Add(min(glance, left))) == nil
}

func (u *uplink) progress() {
	now := time.Now()
	u.longest = max(u.longest, now.Sub(u.last))
	u.last = now
}

// longestGap returns the longest time without progress, including the time since the last one.
func (u *uplink) longestGap() time.Duration { return max(u.longest, time.Since(u.last)) }
