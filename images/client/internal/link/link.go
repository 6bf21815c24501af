// Package link makes connections to brokers, with and without TLS, and names what keeps them from coming about.
package link

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

const connectPatience = 10 * time.Second

// Link is a connection over TCP.
type Link struct {
	net.Conn
	TCP       *net.TCPConn
	Handshake time.Duration // of TLS
}

// Open connects to HOST:PORT. A connection whose other side takes nothing for as long as the patience ends.
func Open(ctx context.Context, address string, config *tls.Config, patience time.Duration) (*Link, error) {
	limit, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	plain, err := (&net.Dialer{}).DialContext(limit, "tcp", address)
	if err != nil {
		return nil, err
	}
	tcp := plain.(*net.TCPConn) // Go sets TCP_NODELAY
	if err := limitSilence(tcp, patience); err != nil {
		tcp.Close()
		return nil, err
	}
	if config == nil {
		return &Link{Conn: tcp, TCP: tcp}, nil
	}
	started := time.Now()
	secured := tls.Client(tcp, config)
	if err := secured.HandshakeContext(limit); err != nil {
		tcp.Close()
		return nil, err
	}
	return &Link{secured, tcp, time.Since(started)}, nil
}

func limitSilence(tcp *net.TCPConn, patience time.Duration) error {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(descriptor uintptr) {
		failed = unix.SetsockoptInt(int(descriptor), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(patience.Milliseconds()))
	})
	return errors.Join(err, failed)
}
