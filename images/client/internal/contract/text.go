package contract

import (
	"fmt"
	"io"
	"time"
)

// TextReport tells a person about trials as they end.
type TextReport struct {
	out   io.Writer
	words func(Trial) string // what a trial that did not fail has measured
}

// NewTextReport writes lines to out.
func NewTextReport(out io.Writer, words func(Trial) string) *TextReport {
	return &TextReport{out, words}
}

// Started says nothing: a person waits for the end.
func (r *TextReport) Started(int, bool, time.Time) error { return nil }

// Ended says what a trial measured, or why it failed.
func (r *TextReport) Ended(trial Trial) error {
	kind := "trial"
	if trial.Warmup {
		kind = "warm-up"
	}
	if trial.Failure != nil {
		_, err := fmt.Fprintf(r.out, "%s %d failed: %s: %s\n", kind, trial.Trial, trial.Failure.Reason, trial.Failure.Message)
		return err
	}
	_, err := fmt.Fprintf(r.out, "%s %d: %s\n", kind, trial.Trial, r.words(trial))
	return err
}
