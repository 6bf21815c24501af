package contract_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/contracttest"
)

// writes counts calls: each is one write(2) when it is a file.
type writes struct {
	bytes.Buffer
	number int
}

func (w *writes) Write(data []byte) (int, error) {
	w.number++
	return w.Buffer.Write(data)
}

func full() contract.Trial {
	number := int64(7)
	return contract.Trial{
		Trial: 1, Outcome: contract.Failed, StartTime: contract.FormatTime(time.Now()), DurationNanoseconds: 7,
		Failure: &contract.Failure{Reason: "NotFound", Message: strings.Repeat("ü", 5000)},
		Client:  contract.ClientSample{CPUNanoseconds: 7},
		Server: &contract.ServerSample{
			ResidentBeforePartsPerMillion: &number, ResidentAfterPartsPerMillion: &number, DeviceReadBytes: &number,
			IOWaitPartsPerMillion: &number, IOPressurePartsPerMillion: &number, CPUPartsPerMillion: &number,
			TCPRetransmits: &number, TCPSegmentsSent: &number, RoundTripNanoseconds: &number, RoundTripMaximumNanoseconds: &number,
		},
		Transfer: &contract.Transfer{Bytes: 7, RetryCauses: map[string]int64{
			contract.Stalled: 1, contract.Truncated: 1, contract.Reset: 1, contract.Refused: 1, contract.Unreachable: 1,
			contract.ServerError: 1, contract.Corrupt: 1,
		}},
		Distributions: &contract.Distributions{DownloadDuration: contract.NewHistogram([]int64{1, 7})},
	}
}

func TestEveryFieldFollowsTheContract(t *testing.T) {
	out := &writes{}
	printer := contract.NewPrinter(out)
	for trial := 1; trial <= 2; trial++ {
		if err := printer.Of(trial).Started(trial, trial == 1, time.Now()); err != nil {
			t.Fatal(err)
		}
		if err := printer.Of(trial).Ended(full()); err != nil {
			t.Fatal(err)
		}
	}
	if out.number != 4 {
		t.Errorf("%d writes for 4 lines", out.number)
	}
	log := filepath.Join(t.TempDir(), "log")
	failure := &contract.Failure{Reason: "Interrupted", Message: strings.Repeat("ü", 5000)}
	if err := contract.WriteTermination(log, printer.Seal(failure)); err != nil {
		t.Fatal(err)
	}
	seal, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	contracttest.Check(t, out.Bytes(), seal)
}

func TestSealWithoutTrials(t *testing.T) {
	seal, err := json.Marshal(contract.NewPrinter(&writes{}).Seal(nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, sealed := contracttest.Check(t, nil, seal); sealed.Failure != nil {
		t.Errorf("%+v", sealed)
	}
}
