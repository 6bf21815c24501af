package download

import (
	"fmt"
	"io"
	"math"
	"time"

	"tierbench.io/client/internal/contract"
)

// TextReport shows trials to a person.
type TextReport struct {
	out     io.Writer
	seconds []float64
	bytes   int64
	failed  int
	retries map[string]int64
}

// NewTextReport writes to out.
func NewTextReport(out io.Writer) *TextReport {
	return &TextReport{out: out, retries: map[string]int64{}}
}

// Started says nothing: a person waits for the end.
func (*TextReport) Started(int, bool, time.Time) error { return nil }

// Ended shows a trial.
func (r *TextReport) Ended(trial contract.Trial) error {
	name := fmt.Sprintf("trial %d", trial.Trial)
	if trial.Warmup {
		name = fmt.Sprintf("warm-up %d", trial.Trial)
	}
	seconds := float64(trial.DurationNanoseconds) / 1e9
	if trial.Outcome == contract.Failed {
		if !trial.Warmup {
			r.failed++
		}
		_, err := fmt.Fprintf(r.out, "%-10s failed after %.3f s: %v\n", name, seconds, trial.Failure)
		return err
	}
	if !trial.Warmup {
		r.seconds = append(r.seconds, seconds)
		r.bytes += trial.Transfer.Bytes
		for cause, number := range trial.Transfer.RetryCauses {
			r.retries[cause] += number
		}
	}
	_, err := fmt.Fprintf(r.out, "%-10s %9.3f s  %8.2f MB/s  %d retries\n",
		name, seconds, float64(trial.Transfer.Bytes)/seconds/1e6, trial.Transfer.Retries)
	return err
}

// Summarize shows what the trials say together.
func (r *TextReport) Summarize() {
	if len(r.seconds) == 0 {
		return
	}
	var sum, squares float64
	for _, value := range r.seconds {
		sum += value
	}
	mean := sum / float64(len(r.seconds))
	for _, value := range r.seconds {
		squares += (value - mean) * (value - mean)
	}
	spread := ""
	if len(r.seconds) > 1 {
		spread = fmt.Sprintf(" ± %.3f s", math.Sqrt(squares/float64(len(r.seconds)-1)))
	}
	fmt.Fprintf(r.out, "mean %.3f s%s (sample standard deviation, n=%d), %.2f MB/s, %d failed, retries %v\n",
		mean, spread, len(r.seconds), float64(r.bytes)/sum/1e6, r.failed, r.retries)
}
