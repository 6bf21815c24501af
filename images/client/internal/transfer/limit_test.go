package transfer

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
)

// drip sends single bytes slowly, so that the connection never stalls and the file never ends.
func drip(writer http.ResponseWriter, request *http.Request) {
	writer.Header().Set("Content-Length", fmt.Sprint(size))
	for request.Context().Err() == nil {
		_, _ = writer.Write(content[:1])
		writer.(http.Flusher).Flush()
		time.Sleep(20 * time.Millisecond)
	}
}

func TestTrialOverItsLimitFailsAndNextRuns(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]spoiler{
		"dripping": func(number int, writer http.ResponseWriter, request *http.Request) bool {
			if number == 1 {
				drip(writer, request)
			}
			return number == 1
		},
		"refusing": once(func(writer http.ResponseWriter) { writer.WriteHeader(http.StatusServiceUnavailable) }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, options := faulty(t, spoil)
			options.Limit, options.Wait, options.ReadTimeout, options.Last = 5*time.Second, time.Hour, time.Hour, 2
			trials := run(t, options)
			if len(trials) != 2 {
				t.Fatalf("%d trials, want 2", len(trials))
			}
			failed(t, trials[0], contract.TimedOut)
			if took := time.Duration(trials[0].DurationNanoseconds); took < options.Limit || !strings.Contains(trials[0].Failure.Message, "5s") {
				t.Errorf("after %v: %v", took, trials[0].Failure)
			}
			completed(t, trials[1])
		})
	}
}

func TestMeasurementMethodIsRecorded(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Options)
		copied bool
	}{
		"plain":  {func(*Options) {}, false},
		"copy":   {func(options *Options) { options.Copy = true }, true},
		"digest": {func(options *Options) { options.VerifyDigest = true }, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, options := faulty(t, honest)
			test.change(&options.Options)
			trial := run(t, options)[0]
			completed(t, trial)
			if transfer := trial.Transfer; transfer.Copied == nil || *transfer.Copied != test.copied || transfer.Cipher != "" {
				t.Errorf("%+v", transfer)
			}
			most := int64(runtime.GOMAXPROCS(0)) * 1000
			if client := trial.Client; client.CPULimitMillicores < 1 || client.CPULimitMillicores > most || client.Computer.Interface == "" {
				t.Errorf("%+v %+v", client, client.Computer)
			}
		})
	}
	t.Run("TLS", func(t *testing.T) {
		server, caFile := secured(t, tls.VersionTLS13, honest)
		trial := run(t, server.secure(t, "TLSv1.3", caFile, "example.com"))[0]
		completed(t, trial)
		if transfer := trial.Transfer; !*transfer.Copied || !strings.HasPrefix(transfer.Cipher, "TLS_") {
			t.Errorf("%+v", transfer)
		}
	})
}
