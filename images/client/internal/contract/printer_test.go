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

// writes counts calls of Write: for a file, each is one write(2).
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
			TCPRetransmits: &number, TCPSegmentsSent: &number, RoundTripNanoseconds: &number, RoundTripMaxNanoseconds: &number,
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

func TestSealWithoutTrialsFollowsTheContract(t *testing.T) {
	seal, err := json.Marshal(contract.NewPrinter(&writes{}).Seal(nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, sealed := contracttest.Check(t, nil, seal); sealed.Failure != nil {
		t.Errorf("%+v", sealed)
	}
}

func TestSealFitsInATerminationMessage(t *testing.T) {
	for _, letter := range []string{"<", "\"", "\x1b", "\x00", "ü", "\u2028", "\xff", "😀"} {
		log := filepath.Join(t.TempDir(), "log")
		failure := &contract.Failure{Reason: "Interrupted", Message: strings.Repeat(letter, 5000)}
		if err := contract.WriteTermination(log, contract.NewPrinter(&writes{}).Seal(failure)); err != nil {
			t.Fatal(err)
		}
		seal, err := os.ReadFile(log)
		if err != nil || len(seal) > 4096 {
			t.Errorf("%q: %d bytes, %v", letter, len(seal), err)
		}
		contracttest.Check(t, nil, seal)
	}
}

func TestMessagesHaveNoControlCharacters(t *testing.T) {
	sealed := contract.NewPrinter(&writes{}).Seal(&contract.Failure{Reason: "Refused", Message: "a\x1b[2J\r\nb\u009bc\u2028d"})
	if sealed.Failure.Message != "a [2J  b c d" {
		t.Errorf("%q", sealed.Failure.Message)
	}
}

func traced(number, size int) contract.Trial {
	trial := full()
	trial.Trial, trial.Failure, trial.Outcome = number, nil, contract.Completed
	trial.Traces = []contract.Trace{{Side: contract.ClientSide, Data: strings.Repeat("x", size/2)}, {Side: contract.ServerSide, Data: strings.Repeat("y", size/2)}}
	return trial
}

// TestTracesLeaveRoomForTrials: a case prints no more traces than the operator keeps.
func TestTracesLeaveRoomForTrials(t *testing.T) {
	for _, cases := range []int{1, 2, 60} {
		out := &writes{}
		printer := contract.NewPrinter(out)
		for number := 1; number <= 160/cases; number++ {
			for one := range cases {
				if err := printer.Of(one + 1).Ended(traced(number, 60_000)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if most := min(cases*256<<10, 4<<20) + 160*2000; out.Len() > most || out.Len() < most/2 {
			t.Errorf("%d cases: %d bytes of %d", cases, out.Len(), most)
		}
		seal, err := json.Marshal(printer.Seal(nil))
		if err != nil {
			t.Fatal(err)
		}
		trials, _ := contracttest.Check(t, out.Bytes(), seal)
		traces, leftOut := 0, 0
		for _, trial := range trials {
			traces += len(trial.Traces) / 2
			if trial.TracesLeftOut {
				leftOut++
			}
		}
		if traces+leftOut != len(trials) || traces != min(4*cases, 4<<20/60_000) {
			t.Errorf("%d cases: %d trials, %d with traces, %d without", cases, len(trials), traces, leftOut)
		}
	}
}
