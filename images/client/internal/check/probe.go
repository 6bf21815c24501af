package check

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	pause       = 200 * time.Millisecond
	headerBytes = 8 // of ICMP
)

var errOther = errors.New("another program answers")

// until repeats a question until it is answered or ctx ends: a network policy and the rules of a Service take effect
// late for a new pod. It returns the last error.
func until(ctx context.Context, each time.Duration, ask func(context.Context) error) error {
	for {
		once, cancel := context.WithTimeout(ctx, each)
		err := ask(once)
		cancel()
		if err == nil || errors.Is(err, os.ErrPermission) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// exchange sends a question to an address, and expects it back.
func exchange(ctx context.Context, protocol, address string) error {
	socket, err := (&net.Dialer{}).DialContext(ctx, protocol, address)
	if err != nil {
		return err
	}
	defer socket.Close()
	if deadline, bounded := ctx.Deadline(); bounded {
		if err := socket.SetDeadline(deadline); err != nil {
			return err
		}
	}
	asked, answered := question(), make([]byte, questionBytes)
	if _, err := socket.Write(asked); err != nil {
		return err
	}
	if _, err := io.ReadFull(socket, answered); err != nil {
		return err
	}
	if !bytes.Equal(asked, answered) {
		return errOther
	}
	return nil
}

// lookUp resolves a name.
func lookUp(ctx context.Context, host string) error {
	_, err := (&net.Resolver{}).LookupHost(ctx, host)
	return err
}

// handshake opens a TLS connection, and sends no credentials.
func handshake(ctx context.Context, address string) error {
	config := &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true} // nothing is sent or trusted
	socket, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return socket.Close()
}

// protocol has the numbers of ICMP for one version of IP.
type protocol struct {
	family, number int
	request, reply byte
}

var (
	icmp4 = protocol{unix.AF_INET, unix.IPPROTO_ICMP, 8, 0}
	icmp6 = protocol{unix.AF_INET6, unix.IPPROTO_ICMPV6, 128, 129}
)

// open opens a socket for echo requests that needs no capability. The kernel refuses it if the group of this process is not in
// net.ipv4.ping_group_range.
func (p protocol) open() (int, error) {
	return unix.Socket(p.family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, p.number)
}

// echo sends an echo request, and expects its reply.
func echo(ctx context.Context, host string) error {
	address, err := netip.ParseAddr(host)
	if err != nil {
		return err
	}
	version, to := icmp6, unix.Sockaddr(&unix.SockaddrInet6{Addr: address.As16()})
	if address.Unmap().Is4() {
		version, to = icmp4, &unix.SockaddrInet4{Addr: address.Unmap().As4()}
	}
	socket, err := version.open()
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	remaining := timeout
	if deadline, bounded := ctx.Deadline(); bounded {
		remaining = max(time.Until(deadline), time.Millisecond)
	}
	limit := unix.NsecToTimeval(int64(remaining))
	if err := unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return err
	}
	asked := append([]byte{version.request, 7: 0}, question()...)
	if err := unix.Sendto(socket, asked, 0, to); err != nil {
		return err
	}
	answered := make([]byte, len(asked))
	size, _, err := unix.Recvfrom(socket, answered, 0)
	switch {
	case errors.Is(err, unix.EAGAIN):
		return os.ErrDeadlineExceeded
	case err != nil:
		return err
	case size != len(asked) || answered[0] != version.reply || !bytes.Equal(answered[headerBytes:], asked[headerBytes:]):
		return errOther
	}
	return nil
}

func question() []byte {
	asked := make([]byte, questionBytes)
	_, _ = rand.Read(asked) // never fails
	return asked
}

// outcome returns the outcome of a question in few characters, because a kubelet keeps only 4096 bytes in all.
func outcome(err error) string {
	var name *net.DNSError
	var network net.Error
	switch {
	case err == nil:
		return ok
	case errors.Is(err, os.ErrPermission):
		return "not permitted"
	case errors.As(err, &name) && name.IsNotFound:
		return "no such name"
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "timed out"
	case errors.As(err, &name):
		return "name server failed"
	case errors.Is(err, unix.ECONNREFUSED):
		return "refused"
	case errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.ENETUNREACH):
		return "no route"
	case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET):
		return "closed"
	case errors.Is(err, errOther):
		return errOther.Error()
	}
	return "failed"
}
