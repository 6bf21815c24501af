package transfer

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
)

// store receives files unless a spoiler answers the PUT of a number, and records each request.
type store struct {
	mutex sync.Mutex
	spoil spoiler
	puts  int
	files map[string][]byte
	asked []string
}

func (s *store) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	s.mutex.Lock()
	s.asked = append(s.asked, request.Method+" "+request.URL.Path)
	if request.Method == http.MethodPut {
		s.puts++
	}
	number, file := s.puts, s.files[request.URL.Path]
	s.mutex.Unlock()
	switch request.Method {
	case http.MethodPut:
		if s.spoil(number, writer, request) {
			return
		}
		body := bytes.NewBuffer(make([]byte, 0, max(request.ContentLength, 0)+bytes.MinRead)) // copies nothing as it grows
		if _, err := body.ReadFrom(request.Body); err != nil {
			return
		}
		s.keep(request.URL.Path, body.Bytes())
		writer.WriteHeader(http.StatusCreated)
	case http.MethodDelete:
		s.keep(request.URL.Path, nil)
		writer.WriteHeader(http.StatusNoContent)
	default:
		if file == nil {
			http.NotFound(writer, request)
			return
		}
		http.ServeContent(writer, request, "", time.Time{}, bytes.NewReader(file))
	}
}

func (s *store) keep(path string, file []byte) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.files[path] = file
}

// storing starts a server of plain HTTP that receives files, and returns the options to upload to it.
func storing(t *testing.T, spoil spoiler) (*store, *trialOptions) {
	t.Helper()
	kept, made := &store{spoil: spoil, files: map[string][]byte{}}, newServer(t, honest)
	made.Config.Handler, made.Config.ErrorLog = kept, quiet
	made.Start()
	return kept, uploading(made.options(t))
}

func uploading(options *trialOptions) *trialOptions {
	options.URL.Path, options.Upload = "/received", true
	return options
}

func TestUploadsAreVerifiedAndRemoved(t *testing.T) {
	for _, verify := range []bool{false, true} {
		t.Run(fmt.Sprintf("digest=%v", verify), func(t *testing.T) {
			var seen []byte
			kept, options := storing(t, honest)
			options.Size, options.VerifyDigest, options.Last = patternBytes+12345, verify, 2
			kept.spoil = func(_ int, _ http.ResponseWriter, request *http.Request) bool {
				body, _ := io.ReadAll(request.Body)
				request.Body, seen = io.NopCloser(bytes.NewReader(body)), body
				return false
			}
			for _, trial := range run(t, options) {
				found := trial.Transfer
				if trial.Outcome != contract.Completed || found.Bytes != options.Size || found.Direction != contract.Upload {
					t.Errorf("%s %+v: %v", trial.Outcome, found, trial.Failure)
				}
				if found.FirstByteNanoseconds != nil || found.Copied != nil || found.ConnectNanoseconds == nil || found.DigestVerified != verify {
					t.Errorf("%+v", found)
				}
				if trial.Distributions.DownloadDuration.Count != 1 {
					t.Errorf("%+v", trial.Distributions)
				}
				retried(t, trial)
			}
			look := map[bool]string{false: "HEAD /received/0", true: "GET /received/0"}[verify]
			once := []string{"PUT /received/0", look, "DELETE /received/0"}
			if want := slices.Repeat(once, 2); !slices.Equal(kept.asked, want) {
				t.Errorf("%q, want %q", kept.asked, want)
			}
			if int64(len(seen)) != options.Size || !bytes.Equal(seen[:12345], seen[patternBytes:]) || bytes.Equal(seen[:100], seen[100:200]) {
				t.Errorf("%d bytes arrived", len(seen))
			}
		})
	}
}

func TestSimultaneousUploadsHaveDifferentNames(t *testing.T) {
	kept, options := storing(t, honest)
	options.Concurrency = 3
	trial := run(t, options)[0]
	if trial.Outcome != contract.Completed || trial.Transfer.Bytes != 3*size || trial.Transfer.Downloads != 3 {
		t.Errorf("%+v: %v", trial.Transfer, trial.Failure)
	}
	for index := range 3 {
		if path := fmt.Sprintf("PUT /received/%d", index); !slices.Contains(kept.asked, path) {
			t.Errorf("no %s in %q", path, kept.asked)
		}
	}
}

func TestBrokenUploadIsCountedAndStartsAgain(t *testing.T) {
	again := make(chan struct{})
	release := sync.OnceFunc(func() { close(again) })
	for cause, spoil := range map[string]spoiler{
		contract.Stalled: func(number int, writer http.ResponseWriter, _ *http.Request) bool {
			if number > 1 {
				release()
				return false
			}
			hold(writer, func(*net.TCPConn) { <-again }) // and reads nothing
			return true
		},
		contract.Reset:       once(func(writer http.ResponseWriter) { hold(writer, reset) }),
		contract.ServerError: once(func(writer http.ResponseWriter) { writer.WriteHeader(http.StatusServiceUnavailable) }),
		contract.Corrupt:     once(func(writer http.ResponseWriter) { hold(writer, garbled) }),
	} {
		t.Run(cause, func(t *testing.T) {
			t.Parallel()
			kept, options := storing(t, spoil)
			if cause == contract.Corrupt {
				options.Size = 10 // all of it arrives before the answer
			}
			if cause == contract.Stalled {
				options.Size, options.ReadTimeout = 64<<20, stalling // more than the kernels hold
			}
			trial := run(t, options)[0]
			if trial.Outcome != contract.Completed || trial.Transfer.Bytes != options.Size {
				t.Errorf("%+v: %v", trial.Transfer, trial.Failure)
			}
			retried(t, trial, cause)
			if len(kept.asked) != 4 {
				t.Errorf("%q", kept.asked)
			}
		})
	}
}

// hold takes a connection from the server, and leaves it to `end`.
func hold(writer http.ResponseWriter, end func(*net.TCPConn)) {
	conn, _, err := writer.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	end(conn.(*net.TCPConn))
}

func garbled(conn *net.TCPConn) { fmt.Fprint(conn, "no HTTP\r\n\r\n") }

func TestServerThatDoesNotAnswerStallsAnUpload(t *testing.T) {
	t.Parallel()
	released := make(chan struct{})
	defer close(released)
	_, options := storing(t, func(_ int, _ http.ResponseWriter, request *http.Request) bool {
		_, _ = io.Copy(io.Discard, request.Body)
		<-released
		return true
	})
	options.Attempts, options.ReadTimeout = 1, stalling
	trial := run(t, options)[0]
	failed(t, trial, "AttemptsExhausted")
	took, longest := time.Duration(trial.DurationNanoseconds), time.Duration(*trial.Transfer.LongestStallNanoseconds)
	if trial.Transfer.Bytes != 0 || took < stalling || longest < stalling || longest > took {
		t.Errorf("seen after %v, longest stall %v, %d bytes", took, longest, trial.Transfer.Bytes)
	}
}

// The server takes a little now and then, for longer than the timeout. Meanwhile the kernels hold all that is left.
func TestSlowServerIsNotAStall(t *testing.T) {
	t.Parallel()
	const pause, parts = 800 * time.Millisecond, 6
	slow := func(_ int, _ http.ResponseWriter, request *http.Request) bool {
		for range parts {
			_, _ = io.CopyN(io.Discard, request.Body, 4<<20)
			time.Sleep(pause)
		}
		request.Body = io.NopCloser(io.MultiReader(bytes.NewReader(make([]byte, parts*4<<20)), request.Body))
		return false
	}
	_, options := storing(t, slow)
	options.Size, options.ReadTimeout = 32<<20, 3*time.Second
	trial := run(t, options)[0]
	if trial.Outcome != contract.Completed || trial.DurationNanoseconds < options.ReadTimeout.Nanoseconds() {
		t.Errorf("%s after %d ns: %v", trial.Outcome, trial.DurationNanoseconds, trial.Failure)
	}
	retried(t, trial)
}

func TestRefusedUploadIsNotRepeated(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge, http.StatusFound} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			_, options := storing(t, always(status))
			trial := run(t, options)[0]
			failed(t, trial, "RequestRefused")
			retried(t, trial)
		})
	}
}

func TestUploadThatIsNotStoredFailsTheTrial(t *testing.T) {
	keeping := func(change func([]byte) []byte) func(*store) spoiler {
		return func(kept *store) spoiler {
			return func(_ int, writer http.ResponseWriter, request *http.Request) bool {
				body, _ := io.ReadAll(request.Body)
				kept.keep(request.URL.Path, change(body))
				writer.WriteHeader(http.StatusCreated)
				return true
			}
		}
	}
	for name, test := range map[string]struct {
		reason string
		verify bool
		spoil  func(*store) spoiler
	}{
		"nothing": {"NotStored", false, keeping(func([]byte) []byte { return nil })},
		"a part":  {"WrongLength", false, keeping(func(body []byte) []byte { return body[:size-1] })},
		"another": {"WrongDigest", true, keeping(func(body []byte) []byte { return append(body[1:], 'x') })},
	} {
		t.Run(name, func(t *testing.T) {
			kept, options := storing(t, honest)
			kept.spoil, options.VerifyDigest = test.spoil(kept), test.verify
			trial := run(t, options)[0]
			failed(t, trial, test.reason)
			if trial.Distributions != nil {
				t.Errorf("%+v", trial.Distributions)
			}
		})
	}
}

func TestUploadsOverTLSComplete(t *testing.T) {
	for version, number := range map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13} {
		t.Run(version, func(t *testing.T) {
			kept := &store{spoil: honest, files: map[string][]byte{}}
			server, caFile := secured(t, number, honest)
			server.Config.Handler = kept
			options := uploading(server.secure(t, version, caFile, "example.com"))
			options.VerifyDigest = true
			trial := run(t, options)[0]
			completed(t, trial)
			if trial.Transfer.TLSNanoseconds == nil || trial.Transfer.Cipher == "" || !trial.Transfer.DigestVerified {
				t.Errorf("%+v", trial.Transfer)
			}
		})
	}
}

func TestInterruptedUploadEndsAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	_, options := storing(t, func(_ int, _ http.ResponseWriter, request *http.Request) bool {
		cancel()
		_, _ = io.Copy(io.Discard, request.Body)
		return true
	})
	options.ReadTimeout, options.Size = time.Hour, 1<<40
	report := &collected{}
	if err := options.run(ctx, report); err == nil || len(report.trials) != 0 {
		t.Errorf("%v, %d trials", err, len(report.trials))
	}
}
