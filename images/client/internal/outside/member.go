package outside

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"time"

	"tierbench.io/client/internal/contract"
)

const (
	keyBytes = 32
	between  = 5 * time.Second // that a delivery between two trials takes at most
	parting  = 5 * time.Second // that a delivery takes at most after a signal to terminate
	mostOff  = time.Minute     // that a clock may be off
)

// errGone says that the operator does not want the work any more.
var errGone = errors.New("the work is gone")

// Member is a machine outside the cluster that measures for a class.
type Member struct {
	Membership

	Token     string // of its invitation
	State     *State
	Addresses Addresses
	Log       io.Writer
	Pause     time.Duration // between requests
	// Measure measures a plan, and reports its trials. It returns the program that measured.
	Measure func(ctx context.Context, plan string, report contract.Report) (contract.Engine, error)

	caller  *caller
	trouble string // that was logged last
}

type facts struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	Version      string `json:"version"`
}

func ownFacts() facts { return facts{runtime.GOOS, runtime.GOARCH, contract.EngineVersion} }

// Run joins the class if it has not joined yet. Then it measures all work that it gets, until ctx ends.
func (m *Member) Run(ctx context.Context) error {
	if err := m.join(ctx); err != nil {
		return err
	}
	m.caller = newCaller(m.URL, m.Credential, m.Pin)
	m.say("member %s of NodeClass %s waits for work", m.Name, m.Class)
	for ctx.Err() == nil {
		taken, had, err := m.next(ctx)
		switch {
		case err != nil:
			return err
		case taken == nil:
			rest(ctx, m.Pause)
		case had:
			err = m.resume(ctx, *taken)
		default:
			err = m.measure(ctx, *taken)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// join exchanges the token for a credential. A repeated request of the same machine has the same answer.
func (m *Member) join(ctx context.Context) error {
	var known Membership
	if _, err := m.State.read(membership, &known); err != nil {
		return err
	}
	if known.URL == m.URL && known.Pin == m.Pin && known.Class == m.Class && known.Key != "" {
		m.Membership = known
	} else {
		key := make([]byte, keyBytes)
		if _, err := rand.Read(key); err != nil {
			return err
		}
		m.Key = hex.EncodeToString(key)
		if err := m.State.write(membership, m.Membership); err != nil {
			return err
		}
	}
	asking := newCaller(m.URL, m.Token, m.Pin)
	body := struct {
		facts
		Key string `json:"key"`
	}{ownFacts(), m.Key}
	for m.Credential == "" {
		status, err := asking.post(ctx, "/v1/join/"+m.Class, body, &m.Membership)
		if err := m.worth(ctx, err); err != nil {
			return err
		}
		if err == nil && status == http.StatusOK {
			return m.State.write(membership, m.Membership)
		}
		rest(ctx, m.Pause)
	}
	return nil
}

// worth returns an error if another request cannot succeed. It logs other errors, each once.
func (m *Member) worth(ctx context.Context, err error) error {
	var no *refused
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		m.trouble = ""
	case errors.As(err, &no):
		return no
	case err.Error() != m.trouble:
		m.trouble = err.Error()
		m.say("%s; trying again", m.trouble)
	}
	return nil
}

func (m *Member) say(format string, values ...any) {
	_, _ = fmt.Fprintf(m.Log, format+"\n", values...)
}

// next returns the work that was begun before, or asks for work.
func (m *Member) next(ctx context.Context) (taken *work, had bool, err error) {
	var known work
	if had, err = m.State.read(current, &known); had || err != nil {
		return &known, had, err
	}
	_, err = m.caller.post(ctx, m.own("ask"), ownFacts(), &known)
	if err := m.worth(ctx, err); err != nil {
		if ctx.Err() != nil {
			return nil, false, nil
		}
		return nil, false, err
	}
	if err != nil || known.Pod == "" {
		return nil, false, nil
	}
	return &known, false, nil
}

func (m *Member) own(action string) string {
	return "/v1/members/" + m.Class + "/" + m.Name + "/" + action
}

// measure measures new work, and delivers it.
func (m *Member) measure(ctx context.Context, taken work) error {
	file, err := m.State.begin(taken)
	if err != nil {
		return err
	}
	defer file.Close()
	m.say("measuring for %s", taken.Pod)
	sent := &delivery{member: m, pod: taken.Pod, file: file}
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	engine := contract.OwnEngine()
	plan, err := localize(taken.Plan, taken.Files, m.State.path(secrets), m.Addresses)
	if err == nil {
		engine, err = m.Measure(working, plan, report{contract.NewPrinter(file), m.ahead(), func() {
			if sent.between(ctx) {
				stop(errGone)
			}
		}})
	}
	if errors.Is(context.Cause(working), errGone) {
		return m.drop(taken)
	}
	last := endOf(engine, err)
	if err := errors.Join(file.Sync(), m.State.write(ended, last)); err != nil {
		return err
	}
	return m.finish(ctx, sent, taken, last)
}

// ahead returns by how much the clock is ahead of the operator's, or 0 unless it is off.
func (m *Member) ahead() time.Duration {
	ahead := m.caller.ahead
	if ahead.Abs() < mostOff {
		return 0
	}
	m.say("the clock of this machine is off by %s, so trials start by the operator's: set it by NTP or chrony", ahead.Abs().Round(time.Second))
	return ahead
}

// resume delivers what was measured before this process began. A trial that was in progress is measured again, because
// the operator offers the missing trials.
func (m *Member) resume(ctx context.Context, taken work) error {
	file, err := m.State.reopen()
	if err != nil {
		return err
	}
	defer file.Close()
	last := end{contract.OwnEngine(), interrupted("the member was restarted")}
	if _, err := m.State.read(ended, &last); err != nil {
		return err
	}
	m.say("delivering what was measured for %s", taken.Pod)
	return m.finish(ctx, &delivery{member: m, pod: taken.Pod, file: file}, taken, last)
}

// finish delivers all lines, and forgets the work. After a signal to terminate it tries for a short time; the next start continues.
func (m *Member) finish(ctx context.Context, sent *delivery, taken work, last end) error {
	delivering := ctx
	if ctx.Err() != nil {
		parted, cancel := context.WithTimeout(context.WithoutCancel(ctx), parting)
		defer cancel()
		delivering = parted
	}
	switch err := sent.all(delivering, last); {
	case errors.Is(err, errGone):
		return m.drop(taken)
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	}
	m.say("delivered what was measured for %s", taken.Pod)
	return m.State.forget()
}

func (m *Member) drop(taken work) error {
	m.say("%s is gone: its client was stopped, or another one continues", taken.Pod)
	return m.State.forget()
}

// delivery sends the lines of work, from the byte on that the operator names.
type delivery struct {
	member *Member
	pod    string
	file   *os.File
	known  int64 // bytes that the operator has
}

type sending struct {
	facts
	Offset int64  `json:"offset"`
	Piece  []byte `json:"piece"`
	End    *end   `json:"end,omitempty"`
}

type state struct {
	State    string `json:"state"`
	Received int64  `json:"received"`
}

// between delivers between two trials, for a short time. It returns whether the work is gone.
func (d *delivery) between(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, between)
	defer cancel()
	if d.file.Sync() != nil {
		return false
	}
	for {
		size, before, err := d.size(), d.known, error(nil)
		if _, err = d.send(limited, nil); err != nil {
			return errors.Is(err, errGone)
		}
		if d.known >= size || d.known <= before {
			return false
		}
	}
}

// all delivers until the stand-in has everything.
func (d *delivery) all(ctx context.Context, last end) error {
	for {
		before := d.known
		done, err := d.send(ctx, &last)
		switch {
		case done, errors.Is(err, errGone):
			return err
		case err != nil:
			if err := d.member.worth(ctx, err); err != nil {
				return err
			}
		case d.known > before && d.known < d.size():
			continue
		}
		rest(ctx, d.member.Pause)
	}
}

// send sends the next piece. With last, the piece that ends with the last line has it.
func (d *delivery) send(ctx context.Context, last *end) (done bool, err error) {
	size := d.size()
	piece := make([]byte, max(0, min(size-d.known, pieceBytes)))
	if _, err := d.file.ReadAt(piece, d.known); err != nil && len(piece) > 0 {
		return false, err
	}
	body := sending{facts: ownFacts(), Offset: d.known, Piece: piece}
	if d.known+int64(len(piece)) >= size {
		body.End = last
	}
	var answer state
	_, err = d.member.caller.post(ctx, d.member.own("lines/"+d.pod), body, &answer)
	switch {
	case isOfAnother(err), err == nil && answer.State == "Gone":
		return false, errGone
	case err != nil:
		return false, err
	case answer.State != "Unknown":
		d.known = answer.Received
	}
	return answer.State == "Done", nil
}

// isOfAnother reports whether the operator takes no lines of this work from this member.
func isOfAnother(err error) bool {
	var no *refused
	return errors.As(err, &no) && (no.status == http.StatusForbidden || no.status == http.StatusRequestEntityTooLarge)
}

func (d *delivery) size() int64 {
	if found, err := d.file.Stat(); err == nil {
		return found.Size()
	}
	return 0
}

// report forwards trials, whose times are by a clock that is ahead. It calls a function when one has ended.
type report struct {
	contract.Report

	ahead time.Duration
	call  func()
}

func (r report) Of(number int) contract.Reporter { return caseReport{r.Report.Of(number), r} }

type caseReport struct {
	contract.Reporter

	report report
}

func (c caseReport) Started(trial int, warmup bool, at time.Time) error {
	return c.Reporter.Started(trial, warmup, at.Add(-c.report.ahead))
}

func (c caseReport) Ended(trial contract.Trial) error {
	if at, err := time.Parse(time.RFC3339Nano, trial.StartTime); err == nil {
		trial.StartTime = contract.FormatTime(at.Add(-c.report.ahead))
	}
	err := c.Reporter.Ended(trial)
	c.report.call()
	return err
}
