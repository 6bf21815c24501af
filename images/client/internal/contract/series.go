package contract

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Target runs trials.
type Target interface {
	// Prepare is called before the first trial.
	Prepare(ctx context.Context) error
	// Trial runs a trial and reports it, even if it failed. An error ends the series early: a *Failure, or
	// context.Canceled.
	Trial(ctx context.Context, report Reporter, number int, warmup bool) error
}

// Closer is a target that keeps resources between trials.
type Closer interface {
	// Close is called after the last trial.
	Close(ctx context.Context)
}

// Case is a target with the case that it measures.
type Case struct {
	Target

	Number   int                         // of the case; 0 for none
	Deadline time.Duration               // for all of its trials together; 0 for none
	Check    func(context.Context) *Link // measures the link before the first trial; nil: there is none
}

// Turn is a trial of a case.
type Turn struct {
	Case   int // index of the case
	Number int // of the trial, from 1
	Warmup bool
}

// Series runs the trials of cases, one per turn.
type Series struct {
	Cases []Case
	Turns []Turn
}

// Run prepares all cases and runs trial after trial, until one ends the series early. The *Failure has the number of its
// case.
func (s *Series) Run(ctx context.Context, report Report) error {
	defer s.close(ctx)
	links := make([]*Link, len(s.Cases))
	for index, one := range s.Cases {
		if one.Check != nil {
			links[index] = one.Check(ctx)
		}
	}
	for _, one := range s.Cases {
		if err := one.Prepare(ctx); err != nil {
			return one.withCase(err)
		}
	}
	spent := make([]time.Duration, len(s.Cases))
	for _, turn := range s.Turns {
		one, started := s.Cases[turn.Case], time.Now()
		if err := one.runTrial(ctx, linked{report.Of(one.Number), links[turn.Case]}, turn, spent[turn.Case]); err != nil {
			return one.withCase(err)
		}
		spent[turn.Case] += time.Since(started)
	}
	return nil
}

// linked adds to each trial what is known of the link.
type linked struct {
	Reporter

	link *Link
}

// Ended reports a trial.
func (l linked) Ended(trial Trial) error {
	trial.Client.Link = l.link
	return l.Reporter.Ended(trial)
}

func (s *Series) close(ctx context.Context) {
	for _, one := range s.Cases {
		if closer, is := one.Target.(Closer); is {
			closer.Close(ctx)
		}
	}
}

// runTrial runs one trial. It reports a trial that exceeds the deadline of the case as failed.
func (c *Case) runTrial(ctx context.Context, report Reporter, turn Turn, spent time.Duration) error {
	if c.Deadline == 0 {
		return c.Trial(ctx, report, turn.Number, turn.Warmup)
	}
	started := time.Now()
	limited, cancel := context.WithTimeout(ctx, c.Deadline-spent)
	defer cancel()
	err := c.Trial(limited, report, turn.Number, turn.Warmup)
	if err == nil || ctx.Err() != nil || limited.Err() == nil {
		return err
	}
	late := &Failure{Reason: TimedOut, Message: fmt.Sprintf("the trials took longer than %v together", c.Deadline)}
	return errors.Join(late, report.Ended(Trial{
		Trial: turn.Number, Warmup: turn.Warmup, Outcome: Failed, Failure: late, StartTime: FormatTime(started),
		DurationNanoseconds: time.Since(started).Nanoseconds(),
	}))
}

// withCase adds the number of the case to a failure.
func (c *Case) withCase(err error) error {
	var failure *Failure
	if !errors.As(err, &failure) {
		return err
	}
	return &Failure{Reason: failure.Reason, Message: failure.Message, Case: c.Number}
}
