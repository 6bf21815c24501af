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

var errNotAsked = errors.New("no CertificateRequest in the handshake")

// Conn is a connection over TCP.
type Conn struct {
	net.Conn
	TCP       *net.TCPConn
	Handshake time.Duration // of TLS
	Cipher    string        // of TLS; empty without
	Resumed   bool          // the session of an earlier connection
	Asked     bool          // for a certificate of the client
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
	made, err := secure(limit, over, options.TLS)
	if err != nil {
		tcp.Close()
		return nil, err
	}
	made.TCP = tcp
	return made, nil
}

// secure makes the handshake. The broker gets the client's certificate whatever CAs it names, as from most libraries.
func secure(ctx context.Context, over net.Conn, config *tls.Config) (*Conn, error) {
	made, own := &Conn{}, &tls.Certificate{}
	if len(config.Certificates) > 0 {
		own = &config.Certificates[0]
	}
	config = config.Clone()
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		made.Asked = true
		return own, nil
	}
	started, secured := time.Now(), tls.Client(over, config)
	err := secured.HandshakeContext(ctx)
	made.Handshake = time.Since(started)
	switch {
	case err != nil && made.Asked:
		return nil, askedError{err}
	case err != nil:
		return nil, err
	}
	state := secured.ConnectionState()
	made.Conn, made.Cipher, made.Resumed = secured, tls.CipherSuiteName(state.CipherSuite), state.DidResume
	if len(own.Certificate) > 0 && !made.Asked && !made.Resumed {
		return nil, Failure("ClientCertificateUnused", "the broker asks for no certificate of the client: let it require one at this port, or write tlsClients.certificates: [None]", errNotAsked)
	}
	return made, nil
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
