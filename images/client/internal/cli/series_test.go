package cli

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tierbench.io/client/internal/contract"
)

// order returns the trials as CASE:TRIAL, with a w for a warm-up trial and a ! for a failed trial.
func order(trials []contract.Trial) string {
	words := []string{}
	for _, trial := range trials {
		word := fmt.Sprintf("%d:%d", trial.Case, trial.Trial)
		if trial.Warmup {
			word = "w" + word
		}
		if trial.Outcome == contract.Failed {
			word += "!"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// second starts another server, and returns the argument with its URL.
func second(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	return serving(t, handle)[1]
}

func TestTrialsOfSeveralTargetsRunInRequestedOrder(t *testing.T) {
	code, trials, seal := sealed(t, serving(t, nil, second(t, nil), "case=3", "case=7", "warmupTrials=1", "trials=7:1,3:1-2,7:2")...)
	if want := "w3:1 w7:1 7:1 3:1 3:2 7:2"; code != 0 || seal.Failure != nil || order(trials) != want {
		t.Errorf("exit code %d, %s, want %s", code, order(trials), want)
	}
}

func TestFailedServerFailsOnlyItsOwnTrials(t *testing.T) {
	broken := func(writer http.ResponseWriter, _ *http.Request) { writer.WriteHeader(http.StatusBadGateway) }
	code, trials, _ := sealed(t, serving(t, nil, second(t, broken), "trials=1-2")...)
	if want := "1:1 2:1! 1:2 2:2!"; code != 0 || order(trials) != want {
		t.Errorf("exit code %d, %s, want %s", code, order(trials), want)
	}
}

func TestSealNamesTheCaseThatEndedTheProgram(t *testing.T) {
	handle := func(writer http.ResponseWriter, request *http.Request) {
		if strings.HasSuffix(request.URL.Path, ".sha256") {
			http.NotFound(writer, request)
		}
	}
	digest := func(writer http.ResponseWriter, _ *http.Request) { fmt.Fprint(writer, strings.Repeat("0", 64)) }
	code, _, seal := sealed(t, serving(t, digest, second(t, handle), "case=3", "case=7", "verifyDigest")...)
	if code != exitFailure || seal.Failure == nil || seal.Failure.Reason != "NoDigest" || seal.Failure.Case != 7 {
		t.Errorf("exit code %d, %+v", code, seal.Failure)
	}
}

func TestTargetOverItsDeadlineIsStoppedAndNamed(t *testing.T) {
	t.Parallel()
	hangs := func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() }
	more := []string{second(t, hangs), "case=3", "case=7", "trials=3:1,7:1,3:2", "deadlineSeconds=3600", "deadlineSeconds=1"}
	code, trials, seal := sealed(t, serving(t, nil, append(more, "readTimeoutMilliseconds=600000")...)...)
	if want := "3:1 7:1!"; code != exitFailure || order(trials) != want || trials[1].Failure.Reason != contract.TimedOut {
		t.Errorf("exit code %d, %s, want %s", code, order(trials), want)
	}
	if seal.Failure == nil || seal.Failure.Case != 7 || seal.Failure.Reason != contract.TimedOut {
		t.Errorf("%+v", seal.Failure)
	}
}

func TestWrongTargetsAreReportedWithAHint(t *testing.T) {
	one := `{"contract": 1, "kind": "Transfer", "sizeBytes": 1, "schedule": [{"case": 3, "trial": 1}], "targets": [{"case": %d, "url": "http://h"}, {"case": %d, "url": "http://h"}]}`
	for wrong, says := range map[string]string{
		fmt.Sprintf(one, 3, 3): "targets[1].case is 3",
		fmt.Sprintf(one, 4, 5): "schedule[0].case is 3",
	} {
		t.Run(says, func(t *testing.T) {
			_, trials, seal := sealed(t, "measure", "--plan="+wrong)
			if len(trials) != 0 || seal.Failure == nil || seal.Failure.Reason != "InvalidArguments" || !strings.Contains(seal.Failure.Message, says) {
				t.Errorf("%+v", seal.Failure)
			}
		})
	}
}

func TestTextNamesTargets(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if code := exitCode(t, process(t, &out, serving(t, nil, second(t, nil))...)); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, words := range []string{"case 1, trial 1", "case 2, trial 1", "case 2, 1 of 1 trials completed"} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("%q lacks %q", out.String(), words)
		}
	}
}

func TestTwoBrokersAreMeasuredInTurn(t *testing.T) {
	t.Parallel()
	one, other := startMosquitto(t, later), startMosquitto(t, later)
	more := []string{fmt.Sprintf("url=mqtt://127.0.0.1:%d", other.port), "passwordFile=" + other.folder + "/password"}
	more = append(more, "messages=5", "inFlight=1", "case=3", "case=7", "trials=7:1,3:1,3:2,7:2")
	code, trials, seal := sealed(t, one.arguments("None", more...)...)
	if want := "7:1 3:1 3:2 7:2"; code != 0 || seal.Failure != nil || order(trials) != want {
		t.Fatalf("exit code %d, %+v, %s, want %s", code, seal.Failure, order(trials), want)
	}
	for _, trial := range trials {
		if trial.Exchange.Received != 5 {
			t.Errorf("%+v", trial.Exchange)
		}
	}
}

func TestUnreachableBrokerIsNamed(t *testing.T) {
	t.Parallel()
	more := []string{"url=mqtt://127.0.0.1:1", "messages=5", "inFlight=1", "readyMilliseconds=300"}
	code, _, seal := sealed(t, startMosquitto(t, later).arguments("None", more...)...)
	if code != exitFailure || seal.Failure == nil || seal.Failure.Reason != "BrokerUnreachable" || seal.Failure.Case != 2 {
		t.Errorf("exit code %d, %+v", code, seal.Failure)
	}
}

func TestTwoNetworksAreMeasuredInTurn(t *testing.T) {
	t.Parallel()
	one, other := startIperf3(t), startIperf3(t)
	code, trials, seal := sealed(t, one.arguments("server="+other.address(), "ping.count=0", "trials=2:1,1:1")...)
	if want := "2:1 1:1"; code != 0 || seal.Failure != nil || order(trials) != want {
		t.Errorf("exit code %d, %+v, %s, want %s", code, seal.Failure, order(trials), want)
	}
}
