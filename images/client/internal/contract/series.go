package contract

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Target is what trials are run against.
type Target interface {
	// Prepare comes before its first trial.
	Prepare(ctx context.Context) error
	// Trial runs a trial and reports it, though it has failed. An error is what ends the series early: a *Failure, or
	// context.Canceled.
	Trial(ctx context.Context, report Reporter, number int, warmup bool) error
}

// Lasting is a target that keeps something from trial to trial.
type Lasting interface {
	// Close comes after its last trial.
	Close(ctx context.Context)
}

// Subject is a target with the case that is measured there.
type Subject struct {
	Target

	Case     int           // its number; 0 for none
	Deadline time.Duration // for all of its trials together; 0 for none
}

// Turn is a trial of a subject.
type Turn struct {
	Subject int // its index
	Number  int // of the trial, from 1
	Warmup  bool
}

// Series are trials of subjects, each in its turn.
type Series struct {
	Subjects []Subject
	Turns    []Turn
}

// Run prepares all subjects and runs trial after trial, until one ends the series early: then the *Failure tells which case
// it is of.
func (s *Series) Run(ctx context.Context, report Report) error {
	defer s.close(ctx)
	for _, subject := range s.Subjects {
		if err := subject.Prepare(ctx); err != nil {
			return subject.blame(err)
		}
	}
	spent := make([]time.Duration, len(s.Subjects))
	for _, turn := range s.Turns {
		subject, started := s.Subjects[turn.Subject], time.Now()
		if err := subject.take(ctx, report.Of(subject.Case), turn, spent[turn.Subject]); err != nil {
			return subject.blame(err)
		}
		spent[turn.Subject] += time.Since(started)
	}
	return nil
}

func (s *Series) close(ctx context.Context) {
	for _, subject := range s.Subjects {
		if lasting, is := subject.Target.(Lasting); is {
			lasting.Close(ctx)
		}
	}
}

// take runs one trial. One that is cut off by the subject's deadline is reported as such: it took longer than this.
func (s *Subject) take(ctx context.Context, report Reporter, turn Turn, spent time.Duration) error {
	if s.Deadline == 0 {
		return s.Trial(ctx, report, turn.Number, turn.Warmup)
	}
	started := time.Now()
	limited, cancel := context.WithTimeout(ctx, s.Deadline-spent)
	defer cancel()
	err := s.Trial(limited, report, turn.Number, turn.Warmup)
	if err == nil || ctx.Err() != nil || limited.Err() == nil {
		return err
	}
	late := &Failure{Reason: TimedOut, Message: fmt.Sprintf("the trials took longer than %v together", s.Deadline)}
	return errors.Join(late, report.Ended(Trial{
		Trial: turn.Number, Warmup: turn.Warmup, Outcome: Failed, Failure: late, StartTime: FormatTime(started),
		DurationNanoseconds: time.Since(started).Nanoseconds(),
	}))
}

// blame says which case a failure is of.
func (s *Subject) blame(err error) error {
	var failure *Failure
	if !errors.As(err, &failure) {
		return err
	}
	return &Failure{Reason: failure.Reason, Message: failure.Message, Case: s.Case}
}
