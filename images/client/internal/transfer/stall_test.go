package transfer

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
)

func TestStallIsDetectedAfterTimeout(t *testing.T) {
	t.Parallel()
	for name, stall := range map[string]func(http.ResponseWriter){
		"in the body":     func(writer http.ResponseWriter) { half(writer, untilGone) },
		"before the head": holdBack,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, options := faulty(t, once(stall))
			options.Attempts, options.ReadTimeout = 1, stalling
			trial := run(t, options)[0]
			failed(t, trial, "AttemptsExhausted")
			took, longest := time.Duration(trial.DurationNanoseconds), time.Duration(*trial.Transfer.LongestStallNanoseconds)
			if took < stalling || longest < stalling || longest > took {
				t.Errorf("seen after %v, longest stall %v", took, longest)
			}
		})
	}
}

func holdBack(writer http.ResponseWriter) {
	conn, _, err := writer.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	untilGone(conn.(*net.TCPConn))
	conn.Close()
}

// Data trickles for longer than the timeout, but each pause is shorter: the deadline must move.
func TestShortPauseIsNotAStall(t *testing.T) {
	t.Parallel()
	const timeout, pause, parts = 3 * time.Second, 800 * time.Millisecond, 6
	trickle := once(func(writer http.ResponseWriter) {
		writer.Header().Set("Content-Length", fmt.Sprint(size))
		for part := range parts {
			_, _ = writer.Write(content[part*size/parts : (part+1)*size/parts])
			writer.(http.Flusher).Flush()
			time.Sleep(pause)
		}
	})
	for name, prepare := range map[string]func(t *testing.T) *trialOptions{
		"dropped": func(t *testing.T) *trialOptions {
			_, options := faulty(t, trickle)
			return options
		},
		"digest": func(t *testing.T) *trialOptions {
			_, options := faulty(t, trickle)
			options.VerifyDigest = true
			return options
		},
		"TLS": func(t *testing.T) *trialOptions {
			server, caFile := secured(t, tls.VersionTLS13, trickle)
			return server.secure(t, "TLSv1.3", caFile, "example.com")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := prepare(t)
			options.ReadTimeout = timeout
			trial := run(t, options)[0]
			completed(t, trial)
			if took := time.Duration(trial.DurationNanoseconds); took < timeout {
				t.Errorf("the data came within %v, less than the timeout", took)
			}
			if longest := time.Duration(*trial.Transfer.LongestStallNanoseconds); longest < pause/2 || longest >= timeout {
				t.Errorf("longest stall %v, the pauses were %v", longest, pause)
			}
		})
	}
}

func TestTrialTimeIncludesWaitsAndStalls(t *testing.T) {
	t.Parallel()
	_, options := faulty(t, once(func(writer http.ResponseWriter) { half(writer, untilGone) }))
	options.ReadTimeout, options.Wait = stalling, 300*time.Millisecond
	trial := run(t, options)[0]
	completed(t, trial, contract.Stalled)
	if took := time.Duration(trial.DurationNanoseconds); took < options.Wait+options.ReadTimeout {
		t.Errorf("%v, but a stall of %v and a wait of %v are part of it", took, options.ReadTimeout, options.Wait)
	}
}
