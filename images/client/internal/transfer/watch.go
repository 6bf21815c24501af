package transfer

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"
)

// watch detects that no data arrives for `timeout`. Setting the deadline of the connection at each read would be expensive, so it
// is moved only when it fires.
type watch struct {
	conn    net.Conn
	timeout time.Duration
	mark    mark
	last    time.Time // when data arrived
	longest time.Duration
}

func newWatch(conn net.Conn, timeout time.Duration) (*watch, error) {
	now := time.Now()
	made := &watch{conn: conn, timeout: timeout, last: now, mark: mark{since: now, value: 1}}
	socket := conn
	if secured, is := conn.(*tls.Conn); is {
		socket = secured.NetConn().(*gathered).Conn
	}
	if tcp, is := socket.(*net.TCPConn); is {
		made.mark.socket, _ = tcp.SyscallConn()
	}
	return made, conn.SetReadDeadline(now.Add(timeout))
}

// data records that bytes arrived, and how many are left.
func (w *watch) data(number, left int64) {
	now := time.Now()
	w.longest = max(w.longest, now.Sub(w.last))
	w.last = now
	if w.mark.arrived(now, number, left) {
		_ = w.conn.SetReadDeadline(now.Add(w.readTimeout())) // otherwise a read returns the end of the connection
	}
}

// readTimeout returns how long a read waits before the watch checks it.
func (w *watch) readTimeout() time.Duration {
	if w.mark.waits() {
		return min(markTimeout, w.timeout)
	}
	return w.timeout
}

// longestGap returns the longest time without data, including the time since the last data.
func (w *watch) longestGap() time.Duration { return max(w.longest, time.Since(w.last)) }

// early reports whether a deadline fired before the timeout had passed, and then moves it. It removes the mark first, so that a
// read gets the bytes that the kernel holds back.
func (w *watch) early(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	next := w.last.Add(w.readTimeout())
	if now := time.Now(); !now.Before(next) {
		if !w.mark.waits() {
			return false
		}
		w.mark.set(1)
		next = w.last.Add(w.timeout)
		if least := now.Add(markTimeout); next.Before(least) {
			next = least
		}
	}
	return w.conn.SetReadDeadline(next) == nil
}
