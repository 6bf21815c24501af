package transfer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
)

func TestFatalErrorIsNotRetried(t *testing.T) {
	length := func(status int, length int, contentRange string) spoiler {
		return func(_ int, writer http.ResponseWriter, _ *http.Request) bool {
			writer.Header().Set("Content-Length", fmt.Sprint(length))
			writer.Header().Set("Content-Range", contentRange)
			writer.WriteHeader(status)
			_, _ = writer.Write(content[:min(length, size)])
			return true
		}
	}
	for _, test := range []struct {
		name, reason string
		spoil        spoiler
	}{
		{"404", "NotFound", always(http.StatusNotFound)},
		{"401", "RequestRefused", always(http.StatusUnauthorized)},
		{"403", "RequestRefused", always(http.StatusForbidden)},
		{"416", "RequestRefused", always(http.StatusRequestedRangeNotSatisfiable)},
		{"a redirection", "RequestRefused", always(http.StatusFound)},
		{"a shorter file", "WrongLength", length(http.StatusOK, 7, "")},
		{"a longer file", "WrongLength", length(http.StatusOK, size+1, "")},
		{"a part of a longer file", "WrongLength", length(http.StatusPartialContent, size, fmt.Sprintf("bytes 0-%d/%d", size-1, size+1))},
		{"no length", "WrongLength", func(_ int, writer http.ResponseWriter, _ *http.Request) bool {
			writer.(http.Flusher).Flush()
			return true
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			server, options := faulty(t, test.spoil)
			options.Last = 2
			trials := run(t, options)
			if len(trials) != 2 {
				t.Fatalf("%d trials, want 2: one that fails does not end the series", len(trials))
			}
			failed(t, trials[0], test.reason)
			retried(t, trials[0])
			server.expectRanges(t, all, all)
		})
	}
}

func TestParallelDownloadsAreOneTrial(t *testing.T) {
	server, options := faulty(t, once(func(writer http.ResponseWriter) { half(writer, abandon) }))
	options.Concurrency, options.First, options.Last, options.Warmup = 4, 3, 4, 1
	trials := run(t, options)
	if len(trials) != 3 || !trials[0].Warmup || trials[0].Trial != 1 || trials[1].Trial != 3 || trials[2].Trial != 4 {
		t.Fatalf("%+v", trials)
	}
	retried(t, trials[0], contract.Truncated)
	if requests := len(server.ranges); requests != 13 {
		t.Errorf("%d requests, want 3 times 4 and one again", requests)
	}
	for _, trial := range trials {
		if transfer := trial.Transfer; transfer.Bytes != 4*size || transfer.Downloads != 4 || trial.Distributions.DownloadDuration.Count != 4 {
			t.Errorf("%+v", transfer)
		}
		if trial.DurationNanoseconds*4 < trial.Distributions.DownloadDuration.SumNanoseconds {
			t.Errorf("%d ns: a trial lasts as long as its slowest download", trial.DurationNanoseconds)
		}
		if trial.Client.CPUNanoseconds <= 0 || trial.Transfer.ConnectNanoseconds == nil || trial.Transfer.FirstByteNanoseconds == nil {
			t.Errorf("%+v %+v", trial.Client, trial.Transfer)
		}
	}
}

func TestOneFailedDownloadFailsItsTrial(t *testing.T) {
	_, options := faulty(t, once(func(writer http.ResponseWriter) { writer.WriteHeader(http.StatusNotFound) }))
	options.Concurrency = 3
	trial := run(t, options)[0]
	failed(t, trial, "NotFound")
	if trial.Transfer.Bytes != 2*size || trial.Distributions.DownloadDuration.Count != 2 {
		t.Errorf("%+v", trial.Transfer)
	}
}

func TestNameIsResolvedAndTimed(t *testing.T) {
	_, options := faulty(t, honest)
	options.URL.Host = strings.Replace(options.URL.Host, "127.0.0.1", "localhost", 1)
	trial := run(t, options)[0]
	completed(t, trial)
	if trial.Transfer.LookupNanoseconds <= 0 {
		t.Errorf("%+v", trial.Transfer)
	}
}

func TestInterruptionEndsAtOnce(t *testing.T) {
	for name, spoil := range map[string]func(context.CancelFunc) spoiler{
		"in a transfer": func(cancel context.CancelFunc) spoiler {
			return once(func(writer http.ResponseWriter) {
				half(writer, func(conn *net.TCPConn) { cancel(); untilGone(conn) })
			})
		},
		"in a wait": func(cancel context.CancelFunc) spoiler {
			return once(func(writer http.ResponseWriter) { writer.WriteHeader(http.StatusServiceUnavailable); cancel() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			_, options := faulty(t, spoil(cancel))
			options.ReadTimeout, options.Wait = time.Hour, time.Hour
			started := time.Now()
			report := &collected{}
			if err := options.run(ctx, report); !errors.Is(err, context.Canceled) || len(report.trials) != 0 {
				t.Errorf("%v, %d trials", err, len(report.trials))
			}
			if took := time.Since(started); took > time.Minute {
				t.Errorf("it ended after %v", took)
			}
		})
	}
}

func TestMissingDigestIsReported(t *testing.T) {
	for name, spoil := range map[string]func(http.ResponseWriter){
		"absent":   func(writer http.ResponseWriter) { writer.WriteHeader(http.StatusNotFound) },
		"no hex":   func(writer http.ResponseWriter) { fmt.Fprintln(writer, strings.Repeat("x", 64)) },
		"too long": func(writer http.ResponseWriter) { fmt.Fprintln(writer, strings.Repeat("a", 66)) },
		"empty":    func(http.ResponseWriter) {},
		"down":     func(writer http.ResponseWriter) { writer.WriteHeader(http.StatusBadGateway) },
	} {
		t.Run(name, func(t *testing.T) {
			made, options := faulty(t, honest)
			made.Config.Handler = http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) { spoil(writer) })
			options.VerifyDigest = true
			var failure *contract.Failure
			if err := options.run(context.Background(), &collected{}); !errors.As(err, &failure) || failure.Reason != "NoDigest" {
				t.Errorf("%v", err)
			}
		})
	}
}
