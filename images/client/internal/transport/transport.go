// Package transport makes connections to brokers, with and without TLS, and names what keeps them from coming about.
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

// Options says how to connect.
type Options struct {
	Address string        // HOST:PORT
	TLS     *tls.Config   // nil without
	Timeout time.Duration // for another side that takes nothing
	Quick   bool          // for a light load
	Refused egress.Networks
}

// Dial connects. A connection whose other side takes nothing for as long as the timeout ends.
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

// Congestion is the algorithm of its congestion control; empty if the kernel does not tell.
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
