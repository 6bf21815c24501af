package agent

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzProc parses files of /proc, whose content differs by kernel version and configuration.
func FuzzProc(f *testing.F) {
	f.Add("cpu  1 2 3 4 5 6 7 8 9 10\n")
	f.Add("cpu 18446744073709551615 18446744073709551615 1 1 1 1\n")
	f.Add("   8       0 sda 1 2 9223372036854775807 4 5\n")
	f.Add("some avg10=0.00 avg60=0.00 avg300=0.00 total=12\n")
	f.Add("Tcp: RtoAlgorithm OutSegs RetransSegs\nTcp: 1 2 3\nTcp: 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = parseStat(text)
		_, _ = parsePressure(text)
		_, _ = parseSNMP(text)
		if read, found := parseDiskRead(text, 8, 0); found && read < 0 {
			t.Errorf("%d bytes read", read)
		}
	})
}

// FuzzRequests sends requests with a valid token.
func FuzzRequests(f *testing.F) {
	for _, body := range []string{
		`{"file":"1048576","cacheState":"Cold"}`, `{"file":"../../etc/passwd","cacheState":"Unchanged"}`, `{"traceMilliseconds":100,"senders":-1}`,
		`{"cacheState":"Unchanged","traceMilliseconds":-9223372036854775808}`, `{"name":"a","part":0,"parts":1}`, "[", strings.Repeat("[", 10_000),
	} {
		f.Add("begin", body)
		f.Add("end", body)
		f.Add("barrier", body)
	}
	f.Fuzz(func(t *testing.T, path, body string) {
		if path != "begin" && path != "end" && path != "barrier" {
			return
		}
		agent, err := New(Options{Token: "secret", Directory: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		request := httptest.NewRequest(http.MethodPost, "/v1/"+path, strings.NewReader(body))
		request.Header.Set("Authorization", "Bearer secret")
		ctx, cancel := context.WithCancel(request.Context())
		cancel() // parts never arrive
		answer := httptest.NewRecorder()
		agent.Handler().ServeHTTP(answer, request.WithContext(ctx))
		if answer.Code >= http.StatusInternalServerError && answer.Code != http.StatusServiceUnavailable {
			t.Errorf("%s %q: %d %s", path, body, answer.Code, answer.Body)
		}
	})
}
