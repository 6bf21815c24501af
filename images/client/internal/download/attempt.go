package download

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"tierbench.io/client/internal/contract"
)

// phases of an attempt.
type phases struct {
	dns, connect, tls, firstByte time.Duration
}

// file is one download: what has arrived of it, over all attempts.
type file struct {
	options  *Options
	received int64
	etag     string
	digest   hash.Hash // nil when the content is dropped
	longest  time.Duration
}

// attempt opens a connection and fetches what is missing. nil: every byte is here.
func (f *file) attempt(ctx context.Context) (phases, error) {
	conn, took, err := f.connect(ctx)
	if err != nil {
		return took, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	err = f.fetch(conn, &took)
	if ctx.Err() != nil {
		return took, context.Canceled
	}
	return took, err
}

func (f *file) connect(ctx context.Context) (net.Conn, phases, error) {
	var took phases
	limit, cancel := context.WithTimeout(ctx, f.options.ReadTimeout)
	defer cancel()
	started := time.Now()
	address, err := resolve(limit, f.options.URL.Hostname())
	took.dns = time.Since(started)
	if err != nil {
		return nil, took, whileConnecting(err)
	}
	started = time.Now()
	conn, err := (&net.Dialer{}).DialContext(limit, "tcp", net.JoinHostPort(address, port(f.options)))
	took.connect = time.Since(started)
	if err != nil {
		return nil, took, whileConnecting(err)
	}
	if f.options.TLS == nil {
		return conn, took, nil
	}
	config := f.options.TLS
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName = f.options.URL.Hostname()
	}
	started = time.Now()
	secured := tls.Client(conn, config)
	err = secured.HandshakeContext(limit)
	took.tls = time.Since(started)
	if err != nil {
		conn.Close()
		if errors.Is(err, context.DeadlineExceeded) {
			err = retry(contract.Stalled, err)
			return nil, took, err
		}
		return nil, took, whileShakingHands(err)
	}
	return secured, took, nil
}

// resolve gives an address of host at once if it is one.
func resolve(ctx context.Context, host string) (string, error) {
	if _, err := netip.ParseAddr(host); err == nil {
		return host, nil
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return "", err
	}
	return addresses[0], nil
}

func port(options *Options) string {
	if named := options.URL.Port(); named != "" {
		return named
	}
	return map[bool]string{true: "443", false: "80"}[options.TLS != nil]
}

func (f *file) fetch(conn net.Conn, took *phases) error {
	if _, err := io.WriteString(conn, f.request()); err != nil {
		return whileReading(err)
	}
	written := time.Now()
	w, err := newWatch(conn, f.options.ReadTimeout)
	if err != nil {
		return whileReading(err)
	}
	defer func() { f.longest = max(f.longest, w.longest) }()
	reader := bufio.NewReader(conn)
	if _, err := reader.Peek(1); err != nil {
		return whileReading(err)
	}
	took.firstByte = time.Since(written)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return whileReading(err)
	}
	if err := f.accept(response); err != nil {
		return err
	}
	if err := w.data(); err != nil {
		return whileReading(err)
	}
	if err := f.body(conn, reader, w); err != nil {
		return whileReading(err)
	}
	return nil
}

func (f *file) request() string {
	var head strings.Builder
	fmt.Fprintf(&head, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: tierbench-client/%s\r\nAccept: */*\r\nConnection: close\r\n",
		f.options.URL.RequestURI(), f.options.URL.Host, contract.EngineVersion)
	if f.received > 0 {
		fmt.Fprintf(&head, "Range: bytes=%d-\r\n", f.received)
		if f.etag != "" {
			fmt.Fprintf(&head, "If-Range: %s\r\n", f.etag)
		}
	}
	head.WriteString("\r\n")
	return head.String()
}

// accept checks the head of an answer: whether it holds what is missing.
func (f *file) accept(response *http.Response) error {
	switch status := response.StatusCode; {
	case status == http.StatusOK:
		f.startOver()
	case status == http.StatusPartialContent:
		var first, last, total int64
		_, err := fmt.Sscanf(response.Header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &total)
		if err != nil || first != f.received || total != f.options.Size {
			f.startOver()
			return retry(contract.Corrupt, fmt.Errorf("the server answered with the range %q", response.Header.Get("Content-Range")))
		}
	case status >= http.StatusInternalServerError:
		return retry(contract.ServerError, errors.New(response.Status))
	case status == http.StatusNotFound:
		return fatal("NotFound", fmt.Sprintf("%s: %s", f.options.URL, response.Status))
	default:
		return fatal("RequestRefused", fmt.Sprintf("%s: %s", f.options.URL, response.Status))
	}
	if expected := f.options.Size - f.received; response.ContentLength != expected {
		return fatal("WrongLength", fmt.Sprintf("%s: the server offers %d bytes, %d are expected", f.options.URL, response.ContentLength, expected))
	}
	f.etag = response.Header.Get("Etag")
	return nil
}

func (f *file) startOver() {
	f.received = 0
	if f.digest != nil {
		f.digest.Reset()
	}
}

func (f *file) body(conn net.Conn, reader *bufio.Reader, w *watch) error {
	left := f.options.Size - f.received
	count := func(number int64) { f.received += number }
	first, err := reader.Peek(int(min(int64(reader.Buffered()), left)))
	if err != nil {
		return err
	}
	if f.digest != nil {
		f.digest.Write(first)
	}
	count(int64(len(first)))
	left -= int64(len(first))
	if plain, isPlain := conn.(*net.TCPConn); isPlain && f.digest == nil {
		return drop(plain, left, w, count)
	}
	return read(conn, left, f.digest, w, count)
}
