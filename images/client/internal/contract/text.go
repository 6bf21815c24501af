package contract

import (
	"fmt"
	"io"
	"time"
)

// TextReport reports trials to a person as they end.
type TextReport struct {
	out    io.Writer
	words  func(Trial) string // what a trial that did not fail has measured
	prefix string
}

// NewTextReport returns a report that writes lines to out.
func NewTextReport(out io.Writer, words func(Trial) string) *TextReport {
	return &TextReport{out, words, ""}
}

// Of returns a reporter for the trials of a case. It names the case if it has a number.
func (r *TextReport) Of(number int) Reporter {
	if number == 0 {
		return r
	}
	return &TextReport{r.out, r.words, fmt.Sprintf("case %d, ", number)}
}

// Started prints nothing, because a person waits for the end.
func (r *TextReport) Started(int, bool, time.Time) error { return nil }

// Ended prints what a trial measured, or why it failed.
func (r *TextReport) Ended(trial Trial) error {
	kind := r.prefix + "trial"
	if trial.Warmup {
		kind = r.prefix + "warm-up"
	}
	if trial.Failure != nil {
		_, err := fmt.Fprintf(r.out, "%s %d failed: %s: %s\n", kind, trial.Trial, trial.Failure.Reason, trial.Failure.Message)
		return err
	}
	_, err := fmt.Fprintf(r.out, "%s %d: %s\n", kind, trial.Trial, r.words(trial))
	return err
}
