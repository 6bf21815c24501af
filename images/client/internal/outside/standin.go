package outside

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tierbench.io/client/internal/contract"
)

const lastRequests = 5 // requests that tell the operator that a stand-in has everything

// StandIn offers a plan to the members of a class, and reports what one of them measures.
type StandIn struct {
	Class, Plan, Signature string
	Absent                 time.Duration // until a member takes the work
	Silent                 time.Duration // of a member that has it
	Pause                  time.Duration // between requests

	caller *caller
	engine contract.Engine
	rest   []byte // a line that has not arrived completely
}

// NewStandIn returns a stand-in that offers its work at url. The pin identifies the operator's key, and the token authenticates
// the stand-in.
func NewStandIn(url, token, pin string) *StandIn {
	return &StandIn{caller: newCaller(url, token, pin), Pause: pause}
}

// Engine returns the program that measured. It is this one until a member has ended its work.
func (s *StandIn) Engine() contract.Engine { return s.engine }

type offer struct {
	ClassName     string            `json:"className"`
	Plan          string            `json:"plan"`
	Signature     string            `json:"signature"`
	Files         map[string][]byte `json:"files"`
	SilentSeconds int               `json:"silentSeconds"`
}

type asked struct {
	Received int64  `json:"received"`
	Member   string `json:"member"`
	Over     bool   `json:"over"`
	Offer    *offer `json:"offer,omitempty"`
}

type given struct {
	Known         bool   `json:"known"`
	Member        string `json:"member"`
	SilentSeconds int    `json:"silentSeconds"`
	Piece         []byte `json:"piece"`
	End           *end   `json:"end"`
}

// Run offers the work until a member has measured it. It returns why the member ended early, or that no member came.
func (s *StandIn) Run(ctx context.Context, report contract.Report) error {
	files, err := filesOf(s.Plan)
	if err != nil {
		return err
	}
	work := &offer{s.Class, s.Plan, s.Signature, files, int(s.Silent.Seconds())}
	var state asked
	for {
		var answer given
		_, err := s.caller.post(ctx, "", state, &answer)
		var no *refused
		switch {
		case ctx.Err() != nil:
			return context.Canceled
		case errors.As(err, &no):
			return &contract.Failure{Reason: "WorkRefused", Message: fmt.Sprintf("%v (%d): use images and an operator of one release", no, no.status)}
		case err == nil && !answer.Known:
			state.Offer = work
			continue
		case err == nil:
			state.Offer, state.Member = nil, answer.Member
			state.Received += int64(len(answer.Piece))
			if err := s.print(report, answer.Piece); err != nil {
				return err
			}
			if answer.End != nil {
				return s.leave(ctx, state, answer.End)
			}
			if failure := s.missing(answer); failure != nil {
				return failure
			}
			if len(answer.Piece) > 0 {
				continue
			}
		}
		if !rest(ctx, s.Pause) {
			return context.Canceled
		}
	}
}

// missing returns why no member measures, if that is so for too long.
func (s *StandIn) missing(answer given) error {
	silent := time.Duration(answer.SilentSeconds) * time.Second
	switch {
	case answer.Member == "" && silent > s.Absent:
		return &contract.Failure{Reason: "NoMemberCame", Message: fmt.Sprintf(
			"no member of NodeClass %s took the work within %v: run tierbench-client join on one of them again", s.Class, s.Absent)}
	case answer.Member != "" && silent > s.Silent:
		return interrupted(fmt.Sprintf("member %s of NodeClass %s has sent nothing for %v", answer.Member, s.Class, s.Silent))
	}
	return nil
}

// leave tells the operator that everything has arrived, and returns why the member ended early. Without an answer the operator
// learns it when the pod is deleted.
func (s *StandIn) leave(ctx context.Context, state asked, last *end) error {
	if last.Engine.Name != "" {
		s.engine = last.Engine
	}
	state.Over = true
	for range lastRequests {
		if _, err := s.caller.post(ctx, "", state, &given{}); err == nil || !rest(ctx, s.Pause) {
			break
		}
	}
	switch {
	case last.Failure != nil:
		return last.Failure.Cut()
	case len(s.rest) > 0:
		return unreadable("the last line has no end")
	}
	return nil
}

// print reports the trials of further lines.
func (s *StandIn) print(report contract.Report, piece []byte) error {
	s.rest = append(s.rest, piece...)
	for {
		line, rest, whole := bytes.Cut(s.rest, []byte("\n"))
		if !whole {
			return nil
		}
		s.rest = rest
		if err := printLine(report, line); err != nil {
			return err
		}
	}
}

func printLine(report contract.Report, line []byte) error {
	var head struct {
		Record string `json:"record"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return unreadable(err.Error())
	}
	switch head.Record {
	case "TrialStarted":
		var started contract.TrialStarted
		if err := json.Unmarshal(line, &started); err != nil {
			return unreadable(err.Error())
		}
		at, err := time.Parse(time.RFC3339Nano, started.Time)
		if err != nil {
			return unreadable(err.Error())
		}
		return report.Of(started.Number).Started(started.Trial, started.Warmup, at)
	case "Trial":
		var trial contract.Trial
		if err := json.Unmarshal(line, &trial); err != nil {
			return unreadable(err.Error())
		}
		return report.Of(trial.Case).Ended(trial)
	}
	return unreadable(fmt.Sprintf("record %q", head.Record))
}

func unreadable(what string) error {
	message := fmt.Sprintf("the member sent what is no trial (%s): use programs and images of one release", what)
	return (&contract.Failure{Reason: "ClientUnreadable", Message: message}).Cut()
}
