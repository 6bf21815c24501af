// Package transport connects to brokers, with and without TLS, and returns the reasons of failures.
package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"tierbench.io/client/internal/egress"
)

const connectTimeout = 10 * time.Second

// Conn is a connection over TCP.
type Conn struct {
	net.Conn
	TCP       *net.TCPConn
	Handshake time.Duration // of TLS
	Cipher    string        // of TLS
}

// Options are the options of Dial.
type Options struct {
	Address string        // HOST:PORT
	TLS     *tls.Config   // nil: no TLS
	Timeout time.Duration // for unacknowledged data (TCP_USER_TIMEOUT)
	Quick   bool          // for a light load
	Refused egress.Networks
}

// Dial connects. The kernel closes a connection with data that stays unacknowledged for the timeout.
func Dial(ctx context.Context, options Options) (*Conn, error) {
	limit, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	plain, err := options.Refused.Dialer().DialContext(limit, "tcp", options.Address)
	if err != nil {
		return nil, err
	}
	tcp := plain.(*net.TCPConn) // Go sets TCP_NODELAY
	over := net.Conn(tcp)
	err = limitSilence(tcp, options.Timeout)
	if err == nil && options.Quick {
		over, err = newQuick(tcp)
	}
	if err != nil {
		tcp.Close()
		return nil, err
	}
	if options.TLS == nil {
		return &Conn{Conn: over, TCP: tcp}, nil
	}
	started := time.Now()
	secured := tls.Client(over, options.TLS)
	if err := secured.HandshakeContext(limit); err != nil {
		tcp.Close()
		return nil, err
	}
	took := time.Since(started)
	return &Conn{secured, tcp, took, tls.CipherSuiteName(secured.ConnectionState().CipherSuite)}, nil
}

// Congestion returns the congestion control algorithm, or an empty string if it is unknown.
func (l *Conn) Congestion() (name string) {
	raw, err := l.TCP.SyscallConn()
	if err != nil {
		return ""
	}
	_ = raw.Control(func(descriptor uintptr) {
		name, _ = unix.GetsockoptString(int(descriptor), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	})
	return name
}

func limitSilence(tcp *net.TCPConn, timeout time.Duration) error {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(descriptor uintptr) {
		failed = unix.SetsockoptInt(int(descriptor), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(timeout.Milliseconds()))
	})
	return errors.Join(err, failed)
}
