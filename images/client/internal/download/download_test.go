package download

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"tierbench.io/client/internal/contract"
)

const size = 3 << 20

var content = bytes.Repeat([]byte("0123456789abcdef"), size/16)

// faulty serves content, and lets `fault` spoil a request by its number, from 1; it returns whether it did.
func faulty(t *testing.T, fault func(number int, writer http.ResponseWriter, request *http.Request) bool) (*Options, *atomic.Int64, *atomic.Int64) {
	t.Helper()
	var requests, served atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if strings.HasSuffix(request.URL.Path, ".sha256") {
			sum := sha256.Sum256(content)
			fmt.Fprintln(writer, hex.EncodeToString(sum[:]))
			return
		}
		if fault(int(requests.Add(1)), writer, request) {
			return
		}
		if writer.Header().Get("Etag") == "" {
			writer.Header().Set("Etag", `"one"`)
		}
		counting := &countingWriter{ResponseWriter: writer, total: &served}
		http.ServeContent(counting, request, "", time.Time{}, bytes.NewReader(content))
	}))
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL + "/file.bin")
	if err != nil {
		t.Fatal(err)
	}
	options := &Options{
		URL: address, Size: size, First: 1, Last: 1, Concurrency: 1, ReadTimeout: 200 * time.Millisecond,
		Attempts: 5, Wait: time.Millisecond, CacheState: "Natural",
	}
	return options, &requests, &served
}

type countingWriter struct {
	http.ResponseWriter
	total *atomic.Int64
}

func (c *countingWriter) Write(data []byte) (int, error) {
	c.total.Add(int64(len(data)))
	return c.ResponseWriter.Write(data)
}

// half sends the head and half of the body, then leaves the connection to `end`.
func half(writer http.ResponseWriter, end func(net.Conn)) {
	conn, buffered, err := writer.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(buffered, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nEtag: \"one\"\r\n\r\n", size)
	buffered.Write(content[:size/2])
	buffered.Flush()
	end(conn)
	conn.Close()
}

type collected struct{ trials []contract.Trial }

func (*collected) Started(int, bool, time.Time) error { return nil }

func (c *collected) Ended(trial contract.Trial) error {
	c.trials = append(c.trials, trial)
	return nil
}

func run(t *testing.T, options *Options) ([]contract.Trial, error) {
	t.Helper()
	report := &collected{}
	err := Run(context.Background(), options, report)
	return report.trials, err
}

func TestEachCauseIsOneCountedRetryThatResumes(t *testing.T) {
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	once := func(spoil func(http.ResponseWriter, *http.Request)) func(int, http.ResponseWriter, *http.Request) bool {
		return func(number int, writer http.ResponseWriter, request *http.Request) bool {
			if number == 1 {
				spoil(writer, request)
			}
			return number == 1
		}
	}
	cases := map[string]func(http.ResponseWriter, *http.Request){
		contract.Stalled: func(writer http.ResponseWriter, _ *http.Request) {
			half(writer, func(net.Conn) {
				select {
				case <-hold:
				case <-time.After(time.Second):
				}
			})
		},
		contract.Truncated: func(writer http.ResponseWriter, _ *http.Request) { half(writer, func(net.Conn) {}) },
		contract.Reset: func(writer http.ResponseWriter, _ *http.Request) {
			half(writer, func(conn net.Conn) {
				time.Sleep(50 * time.Millisecond) // the data that was sent must arrive before the reset does
				if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
					panic(err)
				}
			})
		},
		contract.ServerError: func(writer http.ResponseWriter, _ *http.Request) { writer.WriteHeader(http.StatusServiceUnavailable) },
	}
	for cause, spoil := range cases {
		for _, verify := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s digest=%v", cause, verify), func(t *testing.T) {
				options, requests, served := faulty(t, once(spoil))
				options.VerifyDigest = verify
				trials, err := run(t, options)
				if err != nil {
					t.Fatal(err)
				}
				transfer := trials[0].Transfer
				if trials[0].Outcome != contract.Completed || transfer.Bytes != size || transfer.Errors != 0 {
					t.Errorf("trial %+v, transfer %+v", trials[0], transfer)
				}
				if want := map[string]int64{cause: 1}; !reflect.DeepEqual(transfer.RetryCauses, want) || transfer.Retries != 1 {
					t.Errorf("retries %d by cause %v, want %v", transfer.Retries, transfer.RetryCauses, want)
				}
				if requests.Load() != 2 {
					t.Errorf("%d requests, want 2", requests.Load())
				}
				if again := served.Load(); cause != contract.ServerError && (again > size/2 || again == 0) {
					t.Errorf("%d bytes were asked for again, at most %d were missing", again, size/2)
				}
			})
		}
	}
}

func TestRefusedIsRetriedUntilAttemptsAreUsedUp(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, _ := url.Parse("http://" + listener.Addr().String() + "/file.bin")
	listener.Close()
	options := &Options{URL: address, Size: size, First: 1, Last: 2, Concurrency: 1, ReadTimeout: time.Second, Attempts: 3, Wait: time.Millisecond}
	trials, err := run(t, options)
	if err != nil {
		t.Fatal(err)
	}
	if len(trials) != 2 {
		t.Fatalf("%d trials, want 2: one that fails does not end the series", len(trials))
	}
	if trials[0].Outcome != contract.Failed || trials[0].Failure.Reason != "AttemptsExhausted" {
		t.Errorf("%+v", trials[0])
	}
	if got := trials[0].Transfer.RetryCauses[contract.Refused]; got != 2 {
		t.Errorf("%d retries after 3 attempts, want 2", got)
	}
}

func TestWhatNoAttemptCanMendFailsAtOnce(t *testing.T) {
	cases := map[string]func(http.ResponseWriter){
		"NotFound":       func(writer http.ResponseWriter) { writer.WriteHeader(http.StatusNotFound) },
		"RequestRefused": func(writer http.ResponseWriter) { writer.WriteHeader(http.StatusForbidden) },
		"WrongLength":    func(writer http.ResponseWriter) { writer.Header().Set("Content-Length", "7"); writer.WriteHeader(200) },
	}
	for reason, spoil := range cases {
		t.Run(reason, func(t *testing.T) {
			options, requests, _ := faulty(t, func(_ int, writer http.ResponseWriter, _ *http.Request) bool { spoil(writer); return true })
			trials, err := run(t, options)
			if err != nil {
				t.Fatal(err)
			}
			if trials[0].Outcome != contract.Failed || trials[0].Failure.Reason != reason || trials[0].Transfer.Errors != 1 {
				t.Errorf("%+v", trials[0])
			}
			if requests.Load() != 1 {
				t.Errorf("%d requests, want 1", requests.Load())
			}
		})
	}
}

func TestCorruptContentStartsOver(t *testing.T) {
	options, _, _ := faulty(t, func(number int, writer http.ResponseWriter, request *http.Request) bool {
		if number > 1 {
			return false
		}
		if request.Header.Get("Range") != "" {
			t.Error("a corrupt download was resumed")
		}
		writer.Header().Set("Content-Length", fmt.Sprint(size))
		_, _ = writer.Write(bytes.Repeat([]byte{'x'}, size))
		return true
	})
	options.VerifyDigest = true
	trials, err := run(t, options)
	if err != nil {
		t.Fatal(err)
	}
	if transfer := trials[0].Transfer; transfer.RetryCauses[contract.Corrupt] != 1 || transfer.Bytes != size || !transfer.DigestVerified {
		t.Errorf("%+v", transfer)
	}
}

func TestAServerThatIgnoresRangeStartsOver(t *testing.T) {
	options, _, served := faulty(t, func(number int, writer http.ResponseWriter, request *http.Request) bool {
		if number == 1 {
			half(writer, func(net.Conn) {})
			return true
		}
		request.Header.Del("Range")
		return false
	})
	trials, err := run(t, options)
	if err != nil {
		t.Fatal(err)
	}
	if trials[0].Transfer.Bytes != size || served.Load() != size {
		t.Errorf("%d bytes counted, %d served the second time", trials[0].Transfer.Bytes, served.Load())
	}
}

func TestAChangedFileStartsOver(t *testing.T) {
	options, _, served := faulty(t, func(number int, writer http.ResponseWriter, _ *http.Request) bool {
		if number == 1 {
			half(writer, func(net.Conn) {})
			return true
		}
		writer.Header().Set("Etag", `"two"`)
		return false
	})
	if _, err := run(t, options); err != nil {
		t.Fatal(err)
	}
	if served.Load() != size {
		t.Errorf("%d bytes of the changed file were served, want all %d", served.Load(), size)
	}
}

func TestAStallIsSeenWhenTheTimeoutHasPassed(t *testing.T) {
	options, _, _ := faulty(t, func(_ int, writer http.ResponseWriter, request *http.Request) bool {
		half(writer, func(net.Conn) { <-request.Context().Done() })
		return true
	})
	options.Attempts, options.ReadTimeout = 1, 400*time.Millisecond
	started := time.Now()
	trials, err := run(t, options)
	if err != nil {
		t.Fatal(err)
	}
	if elapsed := time.Since(started); elapsed < 400*time.Millisecond || elapsed > 2*time.Second {
		t.Errorf("seen after %v", elapsed)
	}
	if stall := trials[0].Transfer.LongestStallNanoseconds; stall < int64(400*time.Millisecond) {
		t.Errorf("longest stall %v", time.Duration(stall))
	}
}

func TestParallelDownloadsAreOneTrial(t *testing.T) {
	options, requests, _ := faulty(t, func(int, http.ResponseWriter, *http.Request) bool { return false })
	options.Concurrency, options.Last, options.Warmup = 4, 2, 1
	trials, err := run(t, options)
	if err != nil {
		t.Fatal(err)
	}
	if len(trials) != 3 || !trials[0].Warmup || trials[1].Trial != 1 || trials[2].Trial != 2 || requests.Load() != 12 {
		t.Fatalf("%d trials, %d requests", len(trials), requests.Load())
	}
	if trials[1].Transfer.Bytes != 4*size || trials[1].Distributions.DownloadDuration.Count != 4 {
		t.Errorf("%+v", trials[1].Transfer)
	}
}

func TestInterruptionEndsAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	options, _, _ := faulty(t, func(_ int, writer http.ResponseWriter, request *http.Request) bool {
		half(writer, func(net.Conn) { cancel(); <-request.Context().Done() })
		return true
	})
	options.ReadTimeout = time.Minute
	started := time.Now()
	report := &collected{}
	if err := Run(ctx, options, report); !errors.Is(err, context.Canceled) || len(report.trials) != 0 {
		t.Errorf("%v, %d trials", err, len(report.trials))
	}
	if time.Since(started) > 5*time.Second {
		t.Error("it did not end at once")
	}
}

func TestEveryLineFollowsTheContract(t *testing.T) {
	options, _, _ := faulty(t, func(number int, writer http.ResponseWriter, _ *http.Request) bool {
		switch number {
		case 1:
			writer.WriteHeader(http.StatusBadGateway)
		case 3:
			writer.WriteHeader(http.StatusNotFound)
		default:
			return false
		}
		return true
	})
	options.Last = 2
	var out bytes.Buffer
	printer := contract.NewPrinter(&out)
	if err := Run(context.Background(), options, printer); err != nil {
		t.Fatal(err)
	}
	seal, err := json.Marshal(printer.Seal(&contract.Failure{Reason: "Interrupted", Message: "told to"}))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.NewCompiler().Compile("../../contract.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.New()
	for _, line := range append(bytes.SplitAfter(out.Bytes(), []byte("\n")), seal) {
		if len(line) == 0 {
			continue
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s\n%v", line, err)
		}
		if bytes.Contains(line, []byte(`"record":"Trial"`)) {
			digest.Write(line)
		}
	}
	if want := hex.EncodeToString(digest.Sum(nil)); !bytes.Contains(seal, []byte(want)) {
		t.Errorf("the seal %s lacks the digest %s", seal, want)
	}
}

func TestAgentThatNeverAnswersIsAReason(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		writer.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(writer, `{"reason":"TokenRefused","message":"another token"}`)
	}))
	defer server.Close()
	options, _, _ := faulty(t, func(int, http.ResponseWriter, *http.Request) bool { return false })
	options.Agent = NewAgent(server.URL, "wrong")
	var failure *contract.Failure
	if _, err := run(t, options); !errors.As(err, &failure) || failure.Reason != "TokenRefused" {
		t.Errorf("%v", err)
	}
}
