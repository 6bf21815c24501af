package transfer

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"tierbench.io/client/internal/contract"
)

// TextReport shows trials to a person.
type TextReport struct {
	out   io.Writer
	cases []*caseReport
}

type caseReport struct {
	out     io.Writer
	number  int
	seconds []float64
	bytes   int64
	failed  int
	retries map[string]int64
}

// NewTextReport writes to out.
func NewTextReport(out io.Writer) *TextReport { return &TextReport{out: out} }

// Of returns a reporter for the trials of a case.
func (r *TextReport) Of(number int) contract.Reporter {
	for _, known := range r.cases {
		if known.number == number {
			return known
		}
	}
	one := &caseReport{out: r.out, number: number, retries: map[string]int64{}}
	r.cases = append(r.cases, one)
	return one
}

// prefix returns the name of the case, if it has a number.
func (r *caseReport) prefix() string {
	if r.number == 0 {
		return ""
	}
	return fmt.Sprintf("case %d, ", r.number)
}

// Started prints nothing, because a person waits for the end.
func (*caseReport) Started(int, bool, time.Time) error { return nil }

// Ended shows a trial.
func (r *caseReport) Ended(trial contract.Trial) error {
	if trial.Transfer == nil {
		trial.Transfer = &contract.Transfer{}
	}
	if !trial.Warmup {
		r.add(trial)
	}
	name := fmt.Sprintf("trial %d", trial.Trial)
	if trial.Warmup {
		name = fmt.Sprintf("warm-up %d", trial.Trial)
	}
	seconds := float64(trial.DurationNanoseconds) / 1e9
	result := fmt.Sprintf("%9.3f s  %8.2f MB/s", seconds, float64(trial.Transfer.Bytes)/seconds/1e6)
	if trial.Outcome == contract.Failed {
		result = fmt.Sprintf("failed after %.3f s: %v", seconds, trial.Failure)
	}
	_, err := fmt.Fprintf(r.out, "%s%-10s %s  retries: %s\n", r.prefix(), name, result, words(trial.Transfer.RetryCauses))
	return err
}

func (r *caseReport) add(trial contract.Trial) {
	for cause, number := range trial.Transfer.RetryCauses {
		r.retries[cause] += number
	}
	if trial.Outcome == contract.Failed {
		r.failed++
		return
	}
	r.seconds = append(r.seconds, float64(trial.DurationNanoseconds)/1e9)
	r.bytes += trial.Transfer.Bytes
}

// Summarize prints a summary of the trials.
func (r *TextReport) Summarize() {
	for _, one := range r.cases {
		one.summarize()
	}
}

func (r *caseReport) summarize() {
	number := len(r.seconds)
	fmt.Fprintf(r.out, "\n%s%d of %d trials completed; retries: %s\n", r.prefix(), number, number+r.failed, words(r.retries))
	if number == 0 {
		return
	}
	mean, deviation := spread(r.seconds)
	fmt.Fprintf(r.out, "mean %.3f s, sample standard deviation %.3f s, %.2f MB/s\n",
		mean, deviation, float64(r.bytes)/(mean*float64(number))/1e6)
}

// spread returns the mean and the sample standard deviation, which is 0 for a single value.
func spread(values []float64) (mean, deviation float64) {
	for _, value := range values {
		mean += value / float64(len(values))
	}
	for _, value := range values {
		deviation += (value - mean) * (value - mean)
	}
	return mean, math.Sqrt(deviation / float64(max(len(values)-1, 1)))
}

// words names retries by cause, as in "Stalled 2, Truncated 1".
func words(retries map[string]int64) string {
	if len(retries) == 0 {
		return "none"
	}
	found := []string{}
	for _, cause := range slices.Sorted(maps.Keys(retries)) {
		found = append(found, fmt.Sprintf("%s %d", cause, retries[cause]))
	}
	return strings.Join(found, ", ")
}
