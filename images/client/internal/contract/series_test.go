package contract_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
)

// scripted is a target whose trials run a function of the test.
type scripted struct {
	prepared error
	trial    func(ctx context.Context) error
}

func (s *scripted) Prepare(context.Context) error { return s.prepared }

func (s *scripted) Trial(ctx context.Context, report contract.Reporter, number int, warmup bool) error {
	if s.trial != nil {
		if err := s.trial(ctx); err != nil {
			return err
		}
	}
	return report.Ended(contract.Trial{Trial: number, Warmup: warmup, Outcome: contract.Completed})
}

type recorded struct{ trials []contract.Trial }

func (t *recorded) Of(number int) contract.Reporter { return caseReporter{t, number} }

type caseReporter struct {
	*recorded
	number int
}

func (caseReporter) Started(int, bool, time.Time) error { return nil }

func (t caseReporter) Ended(trial contract.Trial) error {
	trial.Case = t.number
	t.trials = append(t.trials, trial)
	return nil
}

func (t *recorded) order() string {
	words := ""
	for _, trial := range t.trials {
		words += fmt.Sprintf("%d:%d ", trial.Case, trial.Trial)
	}
	return words
}

var turns = []contract.Turn{{Case: 1, Number: 1}, {Case: 0, Number: 1}, {Case: 0, Number: 2}, {Case: 1, Number: 2}}

func TestTrialsRunInTheOrderOfTurns(t *testing.T) {
	report := &recorded{}
	series := contract.Series{Cases: []contract.Case{{Target: &scripted{}, Number: 3}, {Target: &scripted{}, Number: 7}}, Turns: turns}
	if err := series.Run(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	if want := "7:1 3:1 3:2 7:2 "; report.order() != want {
		t.Errorf("%s, want %s", report.order(), want)
	}
}

func TestFailureOfASeriesNamesItsCase(t *testing.T) {
	gone := &contract.Failure{Reason: "AgentUnreachable", Message: "no answer"}
	for name, target := range map[string]*scripted{
		"prepared": {prepared: gone}, "trial": {trial: func(context.Context) error { return fmt.Errorf("trial: %w", gone) }},
	} {
		t.Run(name, func(t *testing.T) {
			series := contract.Series{Cases: []contract.Case{{Target: &scripted{}, Number: 3}, {Target: target, Number: 7}}, Turns: turns}
			var failure *contract.Failure
			if err := series.Run(t.Context(), &recorded{}); !errors.As(err, &failure) || failure.Case != 7 || failure.Reason != gone.Reason {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestTrialOverItsDeadlineIsReported(t *testing.T) {
	hangs := &scripted{trial: func(ctx context.Context) error { <-ctx.Done(); return context.Canceled }}
	report := &recorded{}
	series := contract.Series{
		Cases: []contract.Case{{Target: hangs, Number: 3, Deadline: time.Millisecond}, {Target: &scripted{}, Number: 7, Deadline: time.Hour}},
		Turns: turns,
	}
	var failure *contract.Failure
	if err := series.Run(t.Context(), report); !errors.As(err, &failure) || failure.Case != 3 || failure.Reason != contract.TimedOut {
		t.Errorf("%v", err)
	}
	if want := "7:1 3:1 "; report.order() != want {
		t.Fatalf("%s, want %s", report.order(), want)
	}
	cut := report.trials[1]
	if cut.Outcome != contract.Failed || cut.Failure.Reason != contract.TimedOut || cut.DurationNanoseconds < time.Millisecond.Nanoseconds() {
		t.Errorf("%+v", cut)
	}
}

func TestInterruptionNamesNoCase(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	hangs := &scripted{trial: func(ctx context.Context) error { cancel(); <-ctx.Done(); return context.Canceled }}
	report := &recorded{}
	series := contract.Series{Cases: []contract.Case{{Target: hangs, Number: 3, Deadline: time.Hour}}, Turns: turns[1:2]}
	if err := series.Run(ctx, report); !errors.Is(err, context.Canceled) || len(report.trials) != 0 {
		t.Errorf("%v, %v", err, report.trials)
	}
}
