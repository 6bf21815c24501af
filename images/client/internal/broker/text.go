package broker

import (
	"fmt"
	"io"
	"time"

	"tierbench.io/client/internal/contract"
)

// TextReport tells a person about trials as they end.
type TextReport struct{ out io.Writer }

// NewTextReport writes lines to out.
func NewTextReport(out io.Writer) *TextReport { return &TextReport{out} }

// Started says nothing.
func (r *TextReport) Started(int, bool, time.Time) error { return nil }

// Ended says what became of the messages.
func (r *TextReport) Ended(trial contract.Trial) error {
	kind := "trial"
	if trial.Warmup {
		kind = "warm-up"
	}
	if trial.Failure != nil {
		_, err := fmt.Fprintf(r.out, "%s %d failed: %s: %s\n", kind, trial.Trial, trial.Failure.Reason, trial.Failure.Message)
		return err
	}
	seconds, exchange := float64(trial.DurationNanoseconds)/1e9, trial.Exchange
	cpu := float64(trial.Client.CPUNanoseconds) / 1e3 / float64(max(exchange.Received, 1))
	_, err := fmt.Fprintf(r.out, "%s %d: %d of %d messages in %.3f s, %.0f a second, median round trip %v, %.1f µs of CPU a message, %d lost, %d retried, %d errors\n",
		kind, trial.Trial, exchange.Received, exchange.Sent, seconds, float64(exchange.Received)/seconds,
		time.Duration(trial.Distributions.RoundTrip.Quantile(0.5)), cpu, exchange.Lost, exchange.Retried, exchange.Errors)
	return err
}
