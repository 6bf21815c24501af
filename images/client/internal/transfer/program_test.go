package transfer

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/porttest"
)

// withProgram lets a program do the transfers.
func withProgram(t *testing.T, name string, options *trialOptions) *trialOptions {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%v: run tools/setup", err)
	}
	options.Program, options.Wait = &Program{Name: name, TLS: "None"}, time.Second
	return options
}

func TestProgramsDownloadAndUpload(t *testing.T) {
	for _, name := range Programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, options := faulty(t, honest)
			options = withProgram(t, name, options)
			options.Last, options.Concurrency = 2, 2
			for _, trial := range run(t, options) {
				if trial.Outcome != contract.Completed || trial.Transfer.Bytes != 2*size || trial.Distributions.DownloadDuration.Count != 2 {
					t.Errorf("%+v: %v", trial.Transfer, trial.Failure)
				}
				retried(t, trial)
				hasTimesOf(t, name, trial)
				if trial.Client.CPUNanoseconds <= 0 || !*trial.Transfer.Copied {
					t.Errorf("%+v", trial)
				}
			}
			kept, sending := storing(t, func(_ int, _ http.ResponseWriter, request *http.Request) bool {
				request.Body = http.MaxBytesReader(nil, request.Body, size)
				return false
			})
			sending = withProgram(t, name, sending)
			sending.Last = 2
			for _, trial := range run(t, sending) {
				completed(t, trial)
				hasTimesOf(t, name, trial)
			}
			if len(kept.asked) != 6 || kept.asked[0] != "PUT /received/0" || kept.asked[2] != "DELETE /received/0" {
				t.Errorf("%q", kept.asked)
			}
		})
	}
}

// hasTimesOf asserts that a trial has the times that its program reports, and no others.
func hasTimesOf(t *testing.T, name string, trial contract.Trial) {
	t.Helper()
	found := trial.Transfer
	download := found.Direction == contract.Download
	if (found.ConnectNanoseconds != nil) != (name == "curl") || (found.FirstByteNanoseconds != nil) != (name == "curl" && download) {
		t.Errorf("%s: %+v", name, found)
	}
	if found.LongestStallNanoseconds != nil || found.Cipher != "" || found.DigestVerified {
		t.Errorf("%s: %+v", name, found)
	}
}

func TestRetriesOfProgramsAreCounted(t *testing.T) {
	for _, name := range Programs {
		for _, test := range []struct {
			cause string
			spoil func(http.ResponseWriter)
			again string
		}{
			{contract.Truncated, func(writer http.ResponseWriter) { half(writer, abandon) }, missing},
			{contract.Stalled, func(writer http.ResponseWriter) { half(writer, untilGone) }, missing},
			{contract.Reset, func(writer http.ResponseWriter) { half(writer, reset) }, missing},
			{contract.ServerError, func(writer http.ResponseWriter) { writer.WriteHeader(http.StatusServiceUnavailable) }, all},
		} {
			t.Run(name+" "+test.cause, func(t *testing.T) {
				t.Parallel()
				server, options := faulty(t, once(test.spoil))
				options = withProgram(t, name, options)
				options.ReadTimeout = stalling
				trial := run(t, options)[0]
				completed(t, trial, test.cause)
				again := test.again
				if name == "curl" {
					again = all // it starts again
				}
				server.expectRanges(t, all, again)
				if trial.Transfer.ConnectNanoseconds != nil {
					t.Errorf("%d ns, although the program does not report its first attempt", *trial.Transfer.ConnectNanoseconds)
				}
			})
		}
	}
}

func TestProgramsGiveUp(t *testing.T) {
	for _, name := range Programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := fmt.Sprintf("127.0.0.1:%d", porttest.Free(t))
			trial := run(t, withProgram(t, name, &trialOptions{First: 1, Last: 1, Options: Options{
				URL: &url.URL{Scheme: "http", Host: host, Path: "/file.bin"}, Size: size, Concurrency: 1, ReadTimeout: time.Minute, Attempts: 2,
			}}))[0]
			failed(t, trial, "AttemptsExhausted")
			retried(t, trial, contract.Refused)
			if trial.Transfer.Bytes != 0 || !strings.Contains(trial.Failure.Message, "2 attempts of "+name) {
				t.Errorf("%+v: %v", trial.Transfer, trial.Failure)
			}
		})
	}
}

func TestProgramsReportWrongAnswers(t *testing.T) {
	for _, name := range Programs {
		for reason, spoil := range map[string]spoiler{
			"WrongLength": func(_ int, writer http.ResponseWriter, _ *http.Request) bool {
				_, _ = writer.Write(content[:7])
				return true
			},
			"EngineFailed": always(http.StatusForbidden),
		} {
			t.Run(name+" "+reason, func(t *testing.T) {
				t.Parallel()
				_, options := faulty(t, spoil)
				options = withProgram(t, name, options)
				options.Attempts = 3
				wanted := reason
				if name == "curl" && reason == "EngineFailed" {
					wanted = "AttemptsExhausted" // it retries all errors
				}
				failed(t, run(t, options)[0], wanted)
			})
		}
	}
}

func TestProgramEndsAtTheLimit(t *testing.T) {
	for _, name := range Programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, options := faulty(t, func(_ int, writer http.ResponseWriter, request *http.Request) bool {
				drip(writer, request)
				return true
			})
			options = withProgram(t, name, options)
			options.Limit = time.Second
			trial := run(t, options)[0]
			failed(t, trial, contract.TimedOut)
			if took := time.Duration(trial.DurationNanoseconds); took < options.Limit || took > time.Minute {
				t.Errorf("%v", took)
			}
		})
	}
}

func TestProgramsCheckTheServerKey(t *testing.T) {
	for version, number := range map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13} {
		for _, name := range Programs {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				server, caFile := secured(t, number, honest)
				options := withProgram(t, name, server.secure(t, version, caFile, "example.com"))
				options.Program = &Program{Name: name, TLS: version, ServerName: "example.com", CAFile: caFile}
				trial := run(t, options)[0]
				completed(t, trial)
				if (trial.Transfer.TLSNanoseconds != nil) != (name == "curl") {
					t.Errorf("%+v", trial.Transfer)
				}
				options.Program.pin, options.Program.ServerName, options.Attempts = "sha256//"+strings.Repeat("A", 43)+"=", "elsewhere.example", 1
				outcome := options.Program.transfer(t.Context(), &options.Options, target{addresses: addresses(t, options.URL)}, 0)
				if outcome.err == nil {
					t.Errorf("%s transferred a file from a server with another key", name)
				}
			})
		}
	}
}

func TestLinesOfProgramsAreBounded(t *testing.T) {
	var found []string
	writer := &lineWriter{take: func(line string) { found = append(found, line) }}
	for range 3 {
		if _, err := writer.Write(bytes.Repeat([]byte("x"), mostLine)); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = writer.Write([]byte("x\n one \n\ntwo"))
	writer.end()
	if len(found) != 3 || len(found[0]) != mostLine || found[1] != "one" || found[2] != "two" {
		t.Errorf("%d lines: %.40q", len(found), found)
	}
}

func TestRetriesWithoutAKnownCauseAreCounted(t *testing.T) {
	reader := &wgetReader{causes: map[string]int64{}}
	for _, line := range []string{
		"--2026-11-28 13:34:32--  http://127.0.0.1/received/0", "Connecting to 127.0.0.1:80... connected.", "Retrying.",
		"--2026-11-28 13:34:32--  (try: 2)  http://127.0.0.1/received/0", "Read error at byte 5/9 (Connection timed out). Retrying.",
		"--2026-11-28 13:34:33--  (try:12)  http://127.0.0.1/received/0", "2026-11-28 13:34:32 (2.69 GB/s) - '/dev/null' saved [100000/100000]",
	} {
		reader.line(line)
	}
	if found := reader.findings(); found.retries != 11 || found.causes[contract.Stalled] != 1 || len(found.causes) != 1 || found.bytes != 100000 {
		t.Errorf("%+v", found)
	}
}

func TestMissingProgramEndsTheSeries(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, options := faulty(t, honest)
	options.Program = &Program{Name: "wget"}
	if err := options.run(t.Context(), &collected{}); err == nil || !strings.Contains(err.Error(), "ProgramMissing") {
		t.Errorf("%v", err)
	}
}

func addresses(t *testing.T, address *url.URL) []netip.AddrPort {
	t.Helper()
	found, err := lookUp(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return found.addresses
}
