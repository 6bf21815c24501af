package transfer

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
	"net/url"
	"strings"
	"time"

	"tierbench.io/client/internal/contract"
)

// phases are the durations of the phases of an attempt.
type phases struct {
	connect, tls, firstByte time.Duration
}

// file is the state of one transfer over all attempts.
type file struct {
	options  *Options
	target   target
	address  *url.URL
	uplink   *uplink // of an upload
	received int64
	etag     string
	cipher   string
	digest   hash.Hash // nil when the content is dropped
	longest  time.Duration
}

// attempt opens a connection, and fetches what is missing or sends everything. It returns nil if every byte has arrived.
func (f *file) attempt(ctx context.Context) (phases, error) {
	took, err := f.tryOnce(ctx)
	if err != nil && ctx.Err() != nil {
		return took, context.Cause(ctx)
	}
	return took, err
}

func (f *file) tryOnce(ctx context.Context) (phases, error) {
	conn, took, err := f.connect(ctx)
	if err != nil {
		return took, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if f.options.Upload {
		return took, f.send(conn)
	}
	return took, f.fetch(conn, &took)
}

func (f *file) connect(ctx context.Context) (net.Conn, phases, error) {
	var took phases
	started := time.Now()
	conn, err := f.target.dial(ctx, f.options.ReadTimeout)
	took.connect = time.Since(started)
	if err != nil {
		return nil, took, whileConnecting(err)
	}
	if tcp, is := conn.(*net.TCPConn); is && f.options.Upload {
		f.uplink = newUplink(tcp, f.options.ReadTimeout)
		conn = f.uplink
	}
	if f.options.TLS == nil {
		return conn, took, nil
	}
	secured, err := f.shakeHands(ctx, conn, &took)
	if err != nil {
		conn.Close()
		return nil, took, whileShakingHands(err)
	}
	return secured, took, nil
}

func (f *file) shakeHands(ctx context.Context, conn net.Conn, took *phases) (net.Conn, error) {
	limit, cancel := context.WithTimeout(ctx, f.options.ReadTimeout)
	defer cancel()
	config := f.options.handshake()
	config.DynamicRecordSizingDisabled = f.options.Upload // small records cost the sender
	started := time.Now()
	secured := tls.Client(newGathered(conn), config)
	err := secured.HandshakeContext(limit)
	took.tls = time.Since(started)
	f.cipher = tls.CipherSuiteName(secured.ConnectionState().CipherSuite)
	return secured, err
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
	defer func() { f.longest = max(f.longest, w.longestGap()) }()
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
	w.data(0, 0)
	if err := f.body(conn, reader, w); err != nil {
		return whileReading(err)
	}
	return nil
}

func (f *file) request() string {
	var head strings.Builder
	head.WriteString(f.head(http.MethodGet))
	if f.received > 0 {
		fmt.Fprintf(&head, "Range: bytes=%d-\r\n", f.received)
		if f.etag != "" {
			fmt.Fprintf(&head, "If-Range: %s\r\n", f.etag)
		}
	}
	head.WriteString("\r\n")
	return head.String()
}

// head returns the lines of every request.
func (f *file) head(method string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: tierbench-client/%s\r\nAccept: */*\r\nConnection: close\r\n",
		method, f.address.RequestURI(), f.address.Host, contract.EngineVersion)
}

// accept checks whether the head of a response announces what is missing.
func (f *file) accept(response *http.Response) error {
	switch status := response.StatusCode; {
	case status == http.StatusOK:
		f.startOver()
	case status == http.StatusPartialContent:
		if err := f.acceptRange(response.Header); err != nil {
			return err
		}
	case status >= http.StatusInternalServerError:
		return retry(contract.ServerError, errors.New(response.Status))
	case status == http.StatusNotFound:
		return fatal("NotFound", fmt.Sprintf("%s: %s", f.options.URL, response.Status))
	default:
		return fatal("RequestRefused", fmt.Sprintf("%s: %s", f.options.URL, response.Status))
	}
	f.etag = response.Header.Get("Etag")
	switch offered, expected := response.ContentLength, f.options.Size-f.received; {
	case offered < 0:
		return f.wrongLength("content of unknown length", expected)
	case offered != expected:
		return f.wrongLength(fmt.Sprintf("%d bytes", offered), expected)
	}
	return nil
}

func (f *file) acceptRange(header http.Header) error {
	var first, last, total int64
	offered, etag := header.Get("Content-Range"), header.Get("Etag")
	_, err := fmt.Sscanf(offered, "bytes %d-%d/%d", &first, &last, &total)
	switch {
	case err != nil, first != f.received:
		return retry(contract.Corrupt, fmt.Errorf("the server was asked for the bytes from %d on, and offers %q", f.received, offered))
	case f.etag != "" && etag != "" && etag != f.etag:
		return retry(contract.Corrupt, fmt.Errorf("the server continues with another file: its ETag was %s and is %s", f.etag, etag))
	case total != f.options.Size:
		return f.wrongLength(fmt.Sprintf("a file of %d bytes", total), f.options.Size)
	}
	return nil
}

func (f *file) wrongLength(offered string, expected int64) error {
	return fatal("WrongLength", fmt.Sprintf("%s: the server offers %s instead of %d: check the size", f.options.URL, offered, expected))
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
	if plain, isPlain := conn.(*net.TCPConn); isPlain && !f.options.copies() {
		return drop(plain, left, w, count)
	}
	return read(conn, left, f.digest, w, count)
}
