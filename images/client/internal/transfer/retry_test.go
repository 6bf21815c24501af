package transfer

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/porttest"
)

func TestEachCauseIsCountedAndResumesTheDownload(t *testing.T) {
	for _, test := range []struct {
		cause string
		spoil func(http.ResponseWriter)
		again string
	}{
		{contract.Stalled, func(writer http.ResponseWriter) { half(writer, untilGone) }, missing},
		{contract.Truncated, func(writer http.ResponseWriter) { half(writer, abandon) }, missing},
		{contract.Reset, func(writer http.ResponseWriter) { half(writer, reset) }, missing},
		{contract.ServerError, func(writer http.ResponseWriter) { writer.WriteHeader(http.StatusServiceUnavailable) }, all},
		{contract.Corrupt, garble, all},
	} {
		for _, verify := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s digest=%v", test.cause, verify), func(t *testing.T) {
				t.Parallel()
				server, options := faulty(t, once(test.spoil))
				options.VerifyDigest = verify
				if test.cause == contract.Stalled {
					options.ReadTimeout = stalling
				}
				trial := run(t, options)[0]
				completed(t, trial, test.cause)
				server.expectRanges(t, all, test.again)
				if trial.Transfer.DigestVerified != verify {
					t.Errorf("digest verified: %v", trial.Transfer.DigestVerified)
				}
			})
		}
	}
}

// garble sends an answer that is not HTTP.
func garble(writer http.ResponseWriter) {
	conn, _, err := writer.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "no HTTP\r\n\r\n")
}

func TestSeveralRetriesOfOneDownloadAddUp(t *testing.T) {
	server, options := faulty(t, func(number int, writer http.ResponseWriter, _ *http.Request) bool {
		switch number {
		case 1:
			half(writer, abandon)
		case 2, 3:
			writer.WriteHeader(http.StatusBadGateway)
		case 4:
			garble(writer)
		default:
			return false
		}
		return true
	})
	completed(t, run(t, options)[0], contract.Truncated, contract.ServerError, contract.ServerError, contract.Corrupt)
	server.expectRanges(t, all, missing, missing, missing, all)
}

func TestRefusedConnectionIsRetriedUntilAttemptsEnd(t *testing.T) {
	host := fmt.Sprintf("127.0.0.1:%d", porttest.Free(t))
	options := &trialOptions{First: 1, Last: 2, Options: Options{
		URL: &url.URL{Scheme: "http", Host: host, Path: "/file.bin"}, Size: size,
		Concurrency: 1, ReadTimeout: time.Minute, Attempts: 3, Wait: 20 * time.Millisecond,
	}}
	trials := run(t, options)
	if len(trials) != 2 {
		t.Fatalf("%d trials, want 2: one that fails does not end the series", len(trials))
	}
	for _, trial := range trials {
		failed(t, trial, "AttemptsExhausted")
		retried(t, trial, contract.Refused, contract.Refused)
		if trial.DurationNanoseconds < (2 * options.Wait).Nanoseconds() {
			t.Errorf("%d ns: two waits are part of the time", trial.DurationNanoseconds)
		}
	}
}

func TestUnansweredConnectionIsUnreachable(t *testing.T) {
	t.Parallel()
	address := silent(t)
	options := &trialOptions{First: 1, Last: 1, Options: Options{
		URL: &url.URL{Scheme: "http", Host: address, Path: "/file.bin"}, Size: size,
		Concurrency: 1, ReadTimeout: 100 * time.Millisecond, Attempts: 2,
	}}
	trial := run(t, options)[0]
	failed(t, trial, "AttemptsExhausted")
	retried(t, trial, contract.Unreachable)
	if took := time.Duration(trial.DurationNanoseconds); took < 200*time.Millisecond || took > time.Minute {
		t.Errorf("two connections were given up after %v", took)
	}
}

// silent listens with a full queue, so that the kernel drops further connections.
func silent(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for range 100 {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return address
		}
		t.Cleanup(func() { conn.Close() })
	}
	t.Fatal("the queue does not fill")
	return ""
}

func TestContentWithWrongDigestRestarts(t *testing.T) {
	server, options := faulty(t, once(func(writer http.ResponseWriter) {
		writer.Header().Set("Content-Length", fmt.Sprint(size))
		_, _ = writer.Write(bytes.Repeat([]byte{'x'}, size))
	}))
	options.VerifyDigest = true
	completed(t, run(t, options)[0], contract.Corrupt)
	server.expectRanges(t, all, all)
}

func TestServerWithoutRangesRestartsDownload(t *testing.T) {
	for _, verify := range []bool{false, true} {
		server, options := faulty(t, func(number int, writer http.ResponseWriter, request *http.Request) bool {
			request.Header.Del("Range")
			if number == 1 {
				half(writer, abandon)
			}
			return number == 1
		})
		options.VerifyDigest = verify
		completed(t, run(t, options)[0], contract.Truncated)
		server.expectRanges(t, all, missing)
	}
}

func TestChangedFileRestartsDownload(t *testing.T) {
	server, options := faulty(t, func(number int, writer http.ResponseWriter, request *http.Request) bool {
		if number == 1 {
			half(writer, abandon)
			return true
		}
		writer.Header().Set("Etag", `"two"`)
		http.ServeContent(writer, request, "", time.Time{}, bytes.NewReader(content))
		if writer.Header().Get("Content-Range") != "" {
			t.Error("the client asked for the rest of any file")
		}
		return true
	})
	completed(t, run(t, options)[0], contract.Truncated)
	server.expectRanges(t, all, missing)
}

func TestWrongRangeIsCorrupt(t *testing.T) {
	for name, header := range map[string]map[string]string{
		"another range": {"Content-Range": fmt.Sprintf("bytes 5-%d/%d", size-1, size), "Etag": `"one"`},
		"another file":  {"Content-Range": fmt.Sprintf("bytes %d-%d/%d", size/2, size-1, size), "Etag": `"two"`},
		"no range":      {"Etag": `"one"`},
	} {
		t.Run(name, func(t *testing.T) {
			server, options := faulty(t, func(number int, writer http.ResponseWriter, _ *http.Request) bool {
				switch number {
				case 1:
					half(writer, abandon)
				case 2:
					for key, value := range header {
						writer.Header().Set(key, value)
					}
					writer.WriteHeader(http.StatusPartialContent)
				default:
					return false
				}
				return true
			})
			completed(t, run(t, options)[0], contract.Truncated, contract.Corrupt)
			server.expectRanges(t, all, missing, all)
		})
	}
}

func TestWaitsGrowLikeThoseOfWget(t *testing.T) {
	for name, test := range map[string]struct {
		first, most time.Duration
		waits       []time.Duration
	}{
		"constant": {time.Second, 0, []time.Duration{1, 1, 1, 1}},
		"growing":  {time.Second, 3 * time.Second, []time.Duration{1, 2, 3, 3}},
		"none":     {0, 3 * time.Second, []time.Duration{0, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			options := Options{Wait: test.first, WaitMaximum: test.most}
			for index, wait := range test.waits {
				if found := options.wait(index + 1); found != wait*time.Second {
					t.Errorf("after attempt %d: %v, want %d s", index+1, found, wait)
				}
			}
		})
	}
}

func TestBackoffCountsAsTime(t *testing.T) {
	_, options := faulty(t, func(number int, writer http.ResponseWriter, _ *http.Request) bool {
		if number <= 3 {
			writer.WriteHeader(http.StatusServiceUnavailable)
		}
		return number <= 3
	})
	options.Wait, options.WaitMaximum = 50*time.Millisecond, 100*time.Millisecond
	trial := run(t, options)[0]
	completed(t, trial, contract.ServerError, contract.ServerError, contract.ServerError)
	if took := time.Duration(trial.DurationNanoseconds); took < 250*time.Millisecond {
		t.Errorf("%v, but waits of 50, 100 and 100 ms are part of it", took)
	}
}
