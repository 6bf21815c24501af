package transfer

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/pinned"
)

const (
	dying        = 2 * time.Second // for a program to end after its signal
	mostLine     = 1 << 10         // of what it writes; the rest of a line is left out
	uploadedFile = "/proc/self/fd/3"
)

// Program makes transfers in place of this program: GNU Wget or curl. It is run once for each transfer, with its own retries.
type Program struct {
	Name       string // wget or curl
	TLS        string // None, or exactly this version
	ServerName string // in the server's certificate
	CAFile     string

	pin  string   // of the server's key
	body *os.File // of uploads
}

// Programs are the programs that this one can run.
var Programs = []string{"wget", "curl"}

// Maker returns the program and its version.
func (p *Program) Maker() contract.Engine {
	made := contract.Engine{Name: p.Name, Version: "unknown", Architecture: runtime.GOARCH}
	output, err := exec.Command(p.Name, "--version").Output()
	if err != nil {
		return made
	}
	line, _, _ := strings.Cut(string(output), "\n")
	for _, word := range strings.Fields(line) {
		if word[0] >= '0' && word[0] <= '9' {
			made.Version = word
			break
		}
	}
	return made
}

// prepare looks for the program, and makes what it needs: the file that it uploads, and the pin of the server's key.
func (p *Program) prepare(ctx context.Context, options *Options) error {
	if _, err := exec.LookPath(p.Name); err != nil {
		return fatal("ProgramMissing", fmt.Sprintf("%v: the transfer image has it", err))
	}
	if options.Upload {
		if err := p.makeBody(options.Size); err != nil {
			return err
		}
	}
	if p.Name != "wget" || options.TLS == nil {
		return nil
	}
	return options.persist(ctx, "AttemptsExhausted", options.URL.String(), func() error { return p.learnPin(ctx, options) })
}

// makeBody makes a file of zeros in memory, which takes none: no page of it is ever written.
func (p *Program) makeBody(size int64) error {
	made, err := inMemory("upload")
	if err != nil {
		return fmt.Errorf("memfd: %w", err)
	}
	p.body = made
	return p.body.Truncate(size)
}

// learnPin checks the server's certificate, and keeps its key. wget checks the name in a certificate against that in
// the URL only, which is the server's address.
func (p *Program) learnPin(ctx context.Context, options *Options) error {
	server, err := lookUp(ctx, options.URL)
	if err != nil {
		return err
	}
	conn, err := server.dial(ctx, options.ReadTimeout)
	if err != nil {
		return whileConnecting(err)
	}
	defer conn.Close()
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	secured := tls.Client(conn, options.handshake())
	if err := secured.HandshakeContext(limited); err != nil {
		return whileShakingHands(err)
	}
	p.pin = pinned.Of(secured.ConnectionState().PeerCertificates[0].RawSubjectPublicKeyInfo)
	return nil
}

// Close frees what the program needed.
func (p *Program) Close() {
	if p.body != nil {
		p.body.Close()
	}
}

// findings are what a program reports of a transfer. What it does not report is zero or nil.
type findings struct {
	bytes    int64
	retries  int64            // by its own count
	causes   map[string]int64 // of those whose cause is known
	phases   phases
	last     string // the last line about a problem
	attempts int    // connections that it was allowed
}

// reader understands the lines that a program writes.
type reader interface {
	line(text string)
	findings() findings
}

// transfer runs the program once.
func (p *Program) transfer(ctx context.Context, options *Options, server target, index int) outcome {
	started := time.Now()
	arguments, lines := p.arguments(options, server.addresses[0].String(), index)
	command := exec.CommandContext(ctx, p.Name, arguments...)
	command.Env = []string{"LC_ALL=C", "HOME=/nonexistent", "PATH=" + os.Getenv("PATH")}
	command.WaitDelay = dying
	written := &lineWriter{take: lines.line}
	command.Stderr = written
	if p.body != nil {
		command.ExtraFiles = []*os.File{p.body}
	}
	err := command.Run()
	took := time.Since(started)
	written.end()
	found := lines.findings()
	result := outcome{duration: took, bytes: found.bytes, retries: found.causes, phases: found.phases}
	for _, number := range found.causes {
		found.retries -= number
	}
	result.unexplained = max(0, found.retries)
	if ctx.Err() != nil {
		result.err = context.Cause(ctx)
	} else {
		result.err = p.check(err, options, found, options.address(index))
	}
	if result.err != nil {
		result.bytes = 0
	} else if options.Upload {
		result.bytes = options.Size
	}
	return result
}

// check returns nil if the program ended with all bytes.
func (p *Program) check(err error, options *Options, found findings, address *url.URL) error {
	var code *exec.ExitError
	switch {
	case err == nil && !options.Upload && found.bytes != options.Size:
		return fatal("WrongLength", fmt.Sprintf("%s: %s received %d bytes instead of %d: check the size", address, p.Name, found.bytes, options.Size))
	case err == nil:
		return nil
	case !errors.As(err, &code):
		return fatal("EngineFailed", fmt.Sprintf("%s does not start: %v", p.Name, err))
	case found.attempts >= options.Attempts:
		return fatal("AttemptsExhausted", fmt.Sprintf("all %d attempts of %s failed, the last one with %q: check whether the server is overloaded, "+
			"or raise the read timeout", options.Attempts, p.Name, found.last))
	}
	return fatal("EngineFailed", fmt.Sprintf("%s ended with %v: %q", p.Name, code, found.last))
}

func (p *Program) arguments(options *Options, address string, index int) ([]string, reader) {
	if p.Name == "curl" {
		return p.curlArguments(options, address, index), &curlReader{causes: map[string]int64{}, upload: options.Upload}
	}
	return p.wgetArguments(options, address, index), &wgetReader{causes: map[string]int64{}}
}

// place returns the URL of a transfer at this host.
func place(options *Options, host string, index int) string {
	made := *options.address(index)
	made.Host = host
	return made.String()
}

// seconds returns a duration as programs read it.
func seconds(duration time.Duration) string {
	return strconv.FormatFloat(duration.Seconds(), 'f', -1, 64)
}

// lineWriter takes lines. It keeps at most the beginning of one.
type lineWriter struct {
	take func(string)
	kept []byte
}

func (w *lineWriter) Write(text []byte) (int, error) {
	number := len(text)
	for len(text) > 0 {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		w.kept = append(w.kept, line[:min(len(line), mostLine-len(w.kept))]...)
		if whole {
			w.end()
		}
		text = rest
	}
	return number, nil
}

func (w *lineWriter) end() {
	if line := strings.TrimSpace(string(w.kept)); line != "" {
		w.take(line)
	}
	w.kept = w.kept[:0]
}

// hostOf returns the name that a URL has for a host, with the port of an address.
func hostOf(name, address string) string {
	_, port, _ := net.SplitHostPort(address)
	return net.JoinHostPort(name, port)
}
