package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tierbench.io/client/internal/contract"
)

const size = 3 << 20

const stalling = 2 * time.Second // the read timeout of a download that is to stall: longer than anything else takes

var content = bytes.Repeat([]byte("0123456789abcdef"), size/16)

// spoiler may answer a request in place of the file, by its number from 1; it returns whether it did.
type spoiler func(number int, writer http.ResponseWriter, request *http.Request) bool

func honest(int, http.ResponseWriter, *http.Request) bool { return false }

// once spoils the first request.
func once(spoil func(http.ResponseWriter)) spoiler {
	return func(number int, writer http.ResponseWriter, _ *http.Request) bool {
		if number == 1 {
			spoil(writer)
		}
		return number == 1
	}
}

func always(status int) spoiler {
	return func(_ int, writer http.ResponseWriter, _ *http.Request) bool {
		writer.WriteHeader(status)
		return true
	}
}

// server serves content unless a spoiler answers, and records the Range of each request.
type server struct {
	*httptest.Server
	mutex  sync.Mutex
	spoil  spoiler
	ranges []string
}

func newServer(t *testing.T, spoil spoiler) *server {
	t.Helper()
	made := &server{spoil: spoil}
	made.Server = httptest.NewUnstartedServer(made)
	t.Cleanup(func() { made.Close() })
	return made
}

// faulty starts a server of plain HTTP, and returns the options to download from it.
func faulty(t *testing.T, spoil spoiler) (*server, *trialOptions) {
	t.Helper()
	made := newServer(t, spoil)
	made.Start()
	return made, made.options(t)
}

func (s *server) options(t *testing.T) *trialOptions {
	t.Helper()
	address, err := url.Parse(s.URL + "/file.bin")
	if err != nil {
		t.Fatal(err)
	}
	return &trialOptions{First: 1, Last: 1, Options: Options{
		URL: address, Size: size, Concurrency: 1, ReadTimeout: time.Minute,
		Attempts: 5, Wait: time.Millisecond, CacheState: "Unchanged",
	}}
}

func (s *server) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	if strings.HasSuffix(request.URL.Path, ".sha256") {
		fmt.Fprintf(writer, "%X  file.bin\n", sha256.Sum256(content))
		return
	}
	s.mutex.Lock()
	s.ranges = append(s.ranges, request.Header.Get("Range"))
	number := len(s.ranges)
	s.mutex.Unlock()
	if s.spoil(number, writer, request) {
		return
	}
	if writer.Header().Get("Etag") == "" {
		writer.Header().Set("Etag", `"one"`)
	}
	http.ServeContent(writer, request, "", time.Time{}, bytes.NewReader(content))
}

func (s *server) expectRanges(t *testing.T, want ...string) {
	t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !slices.Equal(s.ranges, want) {
		t.Errorf("requests were made for %q, want %q", s.ranges, want)
	}
}

var (
	missing = fmt.Sprintf("bytes=%d-", size/2) // after half was sent
	all     = ""
)

// half sends the head and half of the body, waits until that has arrived, and leaves the connection to `end`.
func half(writer http.ResponseWriter, end func(*net.TCPConn)) {
	hijacked, buffered, err := writer.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	defer hijacked.Close()
	fmt.Fprintf(buffered, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nEtag: \"one\"\r\n\r\n", size)
	buffered.Write(content[:size/2])
	buffered.Flush()
	if plain, isPlain := hijacked.(*net.TCPConn); isPlain {
		awaitAcknowledged(plain)
		end(plain)
	}
}

func awaitAcknowledged(conn *net.TCPConn) {
	raw, err := conn.SyscallConn()
	if err != nil {
		panic(err)
	}
	for unsent := 1; unsent > 0; time.Sleep(time.Millisecond) {
		if err := raw.Control(func(fd uintptr) { unsent, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }); err != nil {
			panic(err)
		}
	}
}

// untilGone waits until the client has closed the connection.
func untilGone(conn *net.TCPConn) { _, _ = conn.Read(make([]byte, 1)) }

func abandon(*net.TCPConn) {}

func reset(conn *net.TCPConn) {
	if err := conn.SetLinger(0); err != nil {
		panic(err)
	}
}

type collected struct{ trials []contract.Trial }

func (*collected) Started(int, bool, time.Time) error { return nil }

func (c *collected) Ended(trial contract.Trial) error {
	c.trials = append(c.trials, trial)
	return nil
}

func (c *collected) Of(int) contract.Reporter { return c }

// trialOptions are the options and the trials of one server.
type trialOptions struct {
	Options
	First, Last, Warmup int
}

func (a *trialOptions) run(ctx context.Context, report contract.Report) error {
	series := &contract.Series{Cases: []contract.Case{{Target: &Target{Options: &a.Options}}}}
	for number := range a.Warmup {
		series.Turns = append(series.Turns, contract.Turn{Number: number + 1, Warmup: true})
	}
	for number := a.First; number <= a.Last; number++ {
		series.Turns = append(series.Turns, contract.Turn{Number: number})
	}
	return series.Run(ctx, report)
}

func run(t *testing.T, options *trialOptions) []contract.Trial {
	t.Helper()
	report := &collected{}
	if err := options.run(context.Background(), report); err != nil {
		t.Fatal(err)
	}
	return report.trials
}

// completed asserts that a trial completed with its content, and with retries for these causes.
func completed(t *testing.T, trial contract.Trial, causes ...string) {
	t.Helper()
	if trial.Outcome != contract.Completed || trial.Transfer.Bytes != size || trial.Transfer.Errors != 0 {
		t.Errorf("%s with %d bytes and %d errors: %v", trial.Outcome, trial.Transfer.Bytes, trial.Transfer.Errors, trial.Failure)
	}
	retried(t, trial, causes...)
}

func failed(t *testing.T, trial contract.Trial, reason string) {
	t.Helper()
	if trial.Outcome != contract.Failed || trial.Failure.Reason != reason || trial.Transfer.Errors != 1 {
		t.Errorf("%s with %d errors: %v, want %s", trial.Outcome, trial.Transfer.Errors, trial.Failure, reason)
	}
}

func retried(t *testing.T, trial contract.Trial, causes ...string) {
	t.Helper()
	found := []string{}
	for cause, number := range trial.Transfer.RetryCauses {
		found = append(found, slices.Repeat([]string{cause}, int(number))...)
	}
	slices.Sort(found)
	slices.Sort(causes)
	if !slices.Equal(found, causes) || trial.Transfer.Retries != int64(len(causes)) {
		t.Errorf("%d retries by cause %v, want %v", trial.Transfer.Retries, found, causes)
	}
}
