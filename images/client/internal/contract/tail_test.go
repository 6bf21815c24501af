package contract_test

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/contracttest"
)

func unpack(t *testing.T, lines string) []contract.Trial {
	t.Helper()
	packed, err := base64.StdEncoding.DecodeString(lines)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	var trials []contract.Trial
	for line := range bytes.Lines(text) {
		var trial contract.Trial
		if err := json.Unmarshal(line, &trial); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		trials = append(trials, trial)
	}
	return trials
}

// TestSealHoldsTheLastTrials: a seal holds all of a few trials, else the last ones, and fits in a termination message.
func TestSealHoldsTheLastTrials(t *testing.T) {
	for _, number := range []int{1, 20, 1000} {
		out := &writes{}
		printer := contract.NewPrinter(out)
		for trial := range number {
			measured := full()
			measured.Trial, measured.Failure, measured.Outcome = trial+1, nil, contract.Completed
			measured.DurationNanoseconds = int64(trial) * 7919 * 104729
			if err := printer.Of(1).Ended(measured); err != nil {
				t.Fatal(err)
			}
		}
		body, err := json.Marshal(printer.Seal(&contract.Failure{Reason: "Interrupted", Message: strings.Repeat("ü", 200)}))
		if err != nil {
			t.Fatal(err)
		}
		printed, sealed := contracttest.Check(t, out.Bytes(), body)
		held := unpack(t, sealed.Lines)
		if len(held) < min(number, 20) || len(held) == 1000 {
			t.Errorf("the seal holds %d of %d trials", len(held), number)
		}
		for place, trial := range held {
			if want := printed[number-len(held)+place].Trial; trial.Trial != want {
				t.Errorf("%d, want %d", trial.Trial, want)
			}
		}
	}
}

func TestSealHoldsTrialsWithoutTheirTraces(t *testing.T) {
	out := &writes{}
	printer := contract.NewPrinter(out)
	for number := range 3 {
		if err := printer.Of(1).Ended(traced(number+1, 60_000)); err != nil {
			t.Fatal(err)
		}
	}
	held := unpack(t, printer.Seal(nil).Lines)
	if len(held) != 3 || held[0].Traces != nil || !held[0].TracesLeftOut {
		t.Errorf("%d trials, the first with %d traces, left out: %t", len(held), len(held[0].Traces), held[0].TracesLeftOut)
	}
}
