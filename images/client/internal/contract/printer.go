package contract

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"os"
	"runtime"
	"sync"
	"time"
)

// EngineVersion is set when the program is linked.
var EngineVersion = "dev"

// Report receives the trials of all cases.
type Report interface {
	Of(number int) Reporter
}

// Reporter receives the trials of one case.
type Reporter interface {
	Started(trial int, warmup bool, at time.Time) error
	Ended(trial Trial) error
}

// The operator reads 8 MiB of a log, and keeps 256 KiB of traces per case. Traces must not use the space of trials.
const (
	caseTraceBytes = 256 << 10
	allTraceBytes  = 4 << 20
)

// Printer writes the lines of the contract, one write per line, and their seal.
type Printer struct {
	Maker func() Engine // of the load; nil: this program

	mutex      sync.Mutex
	out        io.Writer
	digest     hash.Hash
	trials     int
	last       tail
	traceBytes map[int]int // by case
	allTraces  int
}

// NewPrinter returns a printer that writes lines to out.
func NewPrinter(out io.Writer) *Printer {
	return &Printer{out: out, digest: sha256.New(), traceBytes: map[int]int{}}
}

// Of returns a reporter for the trials of a case.
func (p *Printer) Of(number int) Reporter { return printedCase{p, number} }

type printedCase struct {
	*Printer
	number int
}

// Started prints that a trial begins.
func (p printedCase) Started(trial int, warmup bool, at time.Time) error {
	line := TrialStarted{Version, "TrialStarted", p.number, trial, warmup, FormatTime(at)}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	_, err := p.write(line)
	return err
}

// Ended prints a trial.
func (p printedCase) Ended(trial Trial) error {
	trial.Contract, trial.Record, trial.Case, trial.Failure = Version, "Trial", p.number, trial.Failure.Cut()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !p.take(p.number, trial.Traces) {
		trial.Traces, trial.TracesLeftOut = nil, true
	}
	line, err := p.write(trial)
	if err != nil {
		return err
	}
	p.digest.Write(line)
	p.trials++
	if trial.Traces != nil {
		trial.Traces, trial.TracesLeftOut = nil, true
		line, err = encode(trial)
	}
	p.last.add(line)
	return err
}

// take counts the traces of a trial if there is room for all of them.
func (p *Printer) take(number int, traces []Trace) bool {
	size := 0
	for _, trace := range traces {
		size += len(trace.Data)
	}
	if p.traceBytes[number]+size > caseTraceBytes || p.allTraces+size > allTraceBytes {
		return false
	}
	p.traceBytes[number] += size
	p.allTraces += size
	return true
}

func (p *Printer) write(record any) ([]byte, error) {
	line, err := encode(record)
	if err != nil {
		return nil, err
	}
	_, err = p.out.Write(line)
	return line, err
}

// encode returns a line of JSON, without the escapes that only HTML needs.
func encode(record any) ([]byte, error) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(record)
	return line.Bytes(), err
}

// Seal returns the termination message for the lines printed so far. It holds as many of the last trials as fit.
func (p *Printer) Seal(failure *Failure) Seal {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	seal := Seal{
		Contract: Version,
		Trials:   p.trials,
		SHA256:   hex.EncodeToString(p.digest.Sum(nil)),
		Failure:  failure.Cut(),
		Engine:   OwnEngine(),
	}
	if p.Maker != nil {
		seal.Engine = p.Maker()
	}
	if body, err := encode(seal); err == nil {
		seal.Lines = p.last.packed(messageRoom - len(body))
	}
	return seal
}

// OwnEngine returns this program.
func OwnEngine() Engine { return Engine{"tierbench-client", EngineVersion, runtime.GOARCH} }

// FormatTime formats a time with nanoseconds, as RFC 3339 defines it.
func FormatTime(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

const terminationLog = "/dev/termination-log"

// WriteTermination writes the message to path. If path is empty, it writes to the place where the kubelet looks for it, or
// nowhere outside a container.
func WriteTermination(path string, message any) error {
	if path == "" {
		if _, err := os.Stat(terminationLog); err != nil {
			return nil
		}
		path = terminationLog
	}
	body, err := encode(message)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, body, 0o644); err != nil {
		return fmt.Errorf("the termination message cannot be written: %w", err)
	}
	return nil
}
