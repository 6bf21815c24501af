package outside

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
)

const (
	startedLine = `{"contract":1,"record":"TrialStarted","case":2,"trial":1,"warmup":false,"time":"2026-01-01T00:00:00.5Z"}` + "\n"
	trialLine   = `{"contract":1,"record":"Trial","case":2,"trial":1,"warmup":false,"outcome":"Completed","startTime":"2026-01-01T00:00:00.5Z","durationNanoseconds":7}` + "\n"
)

// printed keeps what a stand-in reports.
type printed struct {
	started []int
	trials  []contract.Trial
}

func (p *printed) Of(int) contract.Reporter { return p }

func (p *printed) Started(trial int, _ bool, _ time.Time) error {
	p.started = append(p.started, trial)
	return nil
}

func (p *printed) Ended(trial contract.Trial) error {
	p.trials = append(p.trials, trial)
	return nil
}

// answers acts as an operator: it gives its answers to a stand-in in turn, and repeats the last one.
type answers struct {
	given []given
	asked []asked
}

func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var found asked
	_ = json.NewDecoder(r.Body).Decode(&found)
	a.asked = append(a.asked, found)
	if len(a.asked)%3 == 0 {
		http.Error(w, "the operator has just started", http.StatusServiceUnavailable)
		return
	}
	next := a.given[0]
	if len(a.given) > 1 {
		a.given = a.given[1:]
	}
	reply(w, next)
}

func runStandIn(t *testing.T, a *answers) (*printed, *StandIn, error) {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("of the agent"), 0o600); err != nil {
		t.Fatal(err)
	}
	plan, err := json.Marshal(map[string]any{"targets": []any{map[string]any{"agent": map[string]any{"tokenFile": secret, "pinFile": ""}}}})
	if err != nil {
		t.Fatal(err)
	}
	url, pin := serve(t, nil, a)
	source := NewStandIn(url+"/v1/work/default/pod", token, pin)
	source.Class, source.Plan, source.Absent, source.Silent, source.Pause = "laptop", string(plan), time.Minute, time.Hour, time.Millisecond
	report := &printed{}
	err = source.Run(t.Context(), report)
	if first := a.asked[1].Offer; first == nil || string(first.Files[secret]) != "of the agent" || first.SilentSeconds != 3600 {
		t.Errorf("%+v", a.asked)
	}
	return report, source, err
}

func TestStandInPrintsWhatAMemberMeasured(t *testing.T) {
	all := startedLine + trialLine
	engine := contract.Engine{Name: "tierbench-client", Version: "1", Architecture: "arm"}
	a := &answers{given: []given{
		{},
		{Known: true},
		{Known: true, Member: "laptop-1", Piece: []byte(all[:40])},
		{},
		{Known: true, Member: "laptop-1", Piece: []byte(all[40:200])},
		{Known: true, Member: "laptop-1", Piece: []byte(all[200:]), End: &end{Engine: engine}},
		{Known: true},
	}}
	report, source, err := runStandIn(t, a)
	if err != nil || len(report.started) != 1 || len(report.trials) != 1 || report.trials[0].DurationNanoseconds != 7 || report.trials[0].Case != 2 {
		t.Errorf("%+v, %v", report, err)
	}
	last := a.asked[len(a.asked)-1]
	if source.Engine() != engine || !last.Over || last.Received != int64(len(all)) || last.Member != "laptop-1" {
		t.Errorf("%+v, %+v", source.Engine(), last)
	}
}

func TestStandInReportsHowTheMemberEnded(t *testing.T) {
	for name, one := range map[string]struct {
		answer given
		reason string
	}{
		"the member failed":           {given{Known: true, Member: "a", End: &end{Failure: &contract.Failure{Reason: "TimedOut", Case: 3}}}, "TimedOut"},
		"no member came":              {given{Known: true, SilentSeconds: 61}, "NoMemberCame"},
		"the member is silent":        {given{Known: true, Member: "a", SilentSeconds: 3601}, "Interrupted"},
		"the member sends no trial":   {given{Known: true, Member: "a", Piece: []byte("{}\n")}, "ClientUnreadable"},
		"the member sends no JSON":    {given{Known: true, Member: "a", Piece: []byte("\x00\n")}, "ClientUnreadable"},
		"the last line has no end":    {given{Known: true, Member: "a", Piece: []byte("{"), End: &end{}}, "ClientUnreadable"},
		"a start has an invalid time": {given{Known: true, Member: "a", Piece: []byte(strings.Replace(startedLine, "2026", "x", 1))}, "ClientUnreadable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := runStandIn(t, &answers{given: []given{{}, {Known: true}, one.answer}})
			var failure *contract.Failure
			if !errors.As(err, &failure) || failure.Reason != one.reason {
				t.Error(err)
			}
		})
	}
}

func TestStandInWaitsForItsOperator(t *testing.T) {
	requests := 0
	ctx, cancel := context.WithCancel(t.Context())
	url, pin := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests++; requests == 5 {
			cancel()
		}
		http.Error(w, "The operator does not know this pod yet.", http.StatusNotFound)
	}))
	source := NewStandIn(url, token, pin)
	source.Plan, source.Pause = "{}", time.Millisecond
	if err := source.Run(ctx, &printed{}); !errors.Is(err, context.Canceled) || requests < 5 {
		t.Error(err, requests)
	}
}

func TestStandInDoesNotOfferARefusedPlanAgain(t *testing.T) {
	url, pin := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "The plan is not of the operator.", http.StatusForbidden)
	}))
	source := NewStandIn(url, token, pin)
	source.Plan = "{}"
	var failure *contract.Failure
	if err := source.Run(t.Context(), &printed{}); !errors.As(err, &failure) || failure.Reason != "WorkRefused" {
		t.Error(err)
	}
}
