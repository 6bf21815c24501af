package outside

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	mrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/pinned"
)

const (
	trials = 5
	token  = "t0ken"
)

// operator is a fake collector, which offers work until every trial is measured. A restart loses the lines that the
// stand-in has not printed.
type operator struct {
	mutex   sync.Mutex
	fault   func(r *http.Request) fault // called with the mutex held
	key     string                      // of the machine that has joined
	attempt int                         // of the current work; 0: none yet
	printed []byte                      // by the stand-in of the current work
	waiting []byte                      // for the stand-in
	over    bool
	ends    []end
	counted map[int]int // how often a trial was printed
	ahead   time.Duration
	starts  []string // in the lines that were printed
}

// fault is what happens to a request.
type fault int

const (
	none fault = iota
	lostRequest
	lostAnswer
	restarted
)

func (o *operator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	w.Header().Set("Date", time.Now().Add(o.ahead).UTC().Format(http.TimeFormat))
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	happens := none
	if o.fault != nil {
		happens = o.fault(r)
	}
	switch happens {
	case lostRequest:
		panic(http.ErrAbortHandler)
	case restarted:
		o.waiting = nil // the stand-in keeps what it has printed
		http.Error(w, "the operator has just started", http.StatusServiceUnavailable)
	case lostAnswer:
		o.answer(httptest.NewRecorder(), r, body)
		panic(http.ErrAbortHandler)
	default:
		o.answer(w, r, body)
	}
}

func (o *operator) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	if o.counted == nil {
		o.counted = map[int]int{}
	}
	switch path := r.URL.Path; {
	case path == "/v1/join/laptop":
		o.join(w, r, body)
	case r.Header.Get("Authorization") != "Bearer credential":
		http.Error(w, "no member", http.StatusUnauthorized)
	case path == "/v1/members/laptop/laptop-1/ask":
		o.ask(w)
	case path == fmt.Sprintf("/v1/members/laptop/laptop-1/lines/%s", o.pod()):
		o.take(w, body)
	default:
		reply(w, state{State: "Gone"})
	}
}

func reply(w http.ResponseWriter, answer any) { _ = json.NewEncoder(w).Encode(answer) }

func (o *operator) pod() string { return fmt.Sprintf("default/pod-%d", o.attempt) }

func (o *operator) join(w http.ResponseWriter, r *http.Request, body []byte) {
	var asked struct {
		Key string `json:"key"`
	}
	_ = json.Unmarshal(body, &asked)
	if r.Header.Get("Authorization") != "Bearer "+token || o.key != "" && o.key != asked.Key {
		http.Error(w, "another machine has joined with this token", http.StatusUnauthorized)
		return
	}
	if o.key == "" {
		o.key = asked.Key
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte("{}"))
		return
	}
	reply(w, map[string]string{"name": "laptop-1", "credential": "credential"})
}

func (o *operator) missing() []int {
	var left []int
	for trial := 1; trial <= trials; trial++ {
		if o.counted[trial] == 0 {
			left = append(left, trial)
		}
	}
	return left
}

// ask offers the missing trials when the previous work has ended, and again if the answer was lost.
func (o *operator) ask(w http.ResponseWriter) {
	left := o.missing()
	if len(left) == 0 {
		reply(w, struct{}{})
		return
	}
	if o.attempt == 0 || o.over {
		o.attempt++
		o.printed, o.waiting, o.over = nil, nil, false
	}
	plan, _ := json.Marshal(map[string]any{"trials": left})
	reply(w, work{Pod: o.pod(), Plan: string(plan)})
}

func (o *operator) take(w http.ResponseWriter, body []byte) {
	var sent sending
	_ = json.Unmarshal(body, &sent)
	have := int64(len(o.printed) + len(o.waiting))
	if sent.Offset == have {
		o.waiting = append(o.waiting, sent.Piece...)
		have += int64(len(sent.Piece))
	}
	if !o.over && sent.End != nil && sent.Offset+int64(len(sent.Piece)) == have {
		o.print()
		o.over, o.ends = true, append(o.ends, *sent.End)
	}
	answer := state{"Taken", have}
	if o.over {
		answer.State = "Done"
	}
	reply(w, answer)
}

// print acts as the stand-in, which prints what has arrived.
func (o *operator) print() {
	for line := range strings.Lines(string(o.waiting)) {
		var trial struct {
			contract.Trial

			Time string `json:"time"` // of TrialStarted
		}
		if json.Unmarshal([]byte(line), &trial) != nil {
			continue
		}
		o.starts = append(o.starts, trial.Time+trial.StartTime)
		if trial.Record == "Trial" {
			o.counted[trial.Trial.Trial]++
		}
	}
	o.printed = append(o.printed, o.waiting...)
	o.waiting = nil
}

func serve(t *testing.T, o *operator, other ...http.Handler) (url, pin string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	handler := http.Handler(o)
	if len(other) > 0 {
		handler = other[0]
	}
	server := httptest.NewUnstartedServer(handler)
	if server.TLS, err = pinned.Server(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})); err != nil {
		t.Fatal(err)
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, pinned.Of(public)
}

// measure acts as the harness: it reports the start and the end of each trial. `kill` may kill it in between.
func measure(kill func() bool) func(context.Context, string, contract.Report) (contract.Engine, error) {
	return func(ctx context.Context, plan string, report contract.Report) (contract.Engine, error) {
		var asked struct {
			Trials []int `json:"trials"`
		}
		if err := json.Unmarshal([]byte(plan), &asked); err != nil {
			return contract.Engine{}, err
		}
		of := report.Of(1)
		for _, number := range asked.Trials {
			if ctx.Err() != nil {
				return contract.OwnEngine(), context.Canceled
			}
			now := time.Now()
			if err := of.Started(number, false, now); err != nil {
				return contract.Engine{}, err
			}
			if kill() {
				panic(errKilled)
			}
			if err := of.Ended(contract.Trial{Trial: number, Outcome: contract.Completed, StartTime: contract.FormatTime(now)}); err != nil {
				return contract.Engine{}, err
			}
		}
		return contract.OwnEngine(), nil
	}
}

var errKilled = errors.New("killed")

func never() bool { return false }

// run runs a member in a folder until ctx ends, or it is killed.
func run(ctx context.Context, o *operator, url, pin, folder string, kill func() bool) (err error) {
	member := &Member{
		Membership: Membership{URL: url, Pin: pin, Class: "laptop"}, Token: token, State: &State{folder}, Log: io.Discard,
		Pause: time.Millisecond, Measure: measure(kill),
	}
	defer func() {
		if found := recover(); found != nil {
			if found != any(errKilled) {
				panic(found)
			}
			err = errKilled
		}
	}()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for rest(ctx, time.Millisecond) {
			o.mutex.Lock()
			if len(o.missing()) == 0 && o.over {
				stop()
			}
			o.mutex.Unlock()
		}
	}()
	return member.Run(ctx)
}

func checkOnce(t *testing.T, o *operator) {
	t.Helper()
	for trial := 1; trial <= trials; trial++ {
		if o.counted[trial] != 1 {
			t.Errorf("trial %d was counted %d times: %v", trial, o.counted[trial], o.counted)
		}
	}
}

func TestMemberMeasuresEachTrialOnce(t *testing.T) {
	o := &operator{}
	url, pin := serve(t, o)
	if err := run(t.Context(), o, url, pin, t.TempDir(), never); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	checkOnce(t, o)
	if len(o.ends) != 1 || o.ends[0].Failure != nil || o.ends[0].Engine.Name != "tierbench-client" {
		t.Errorf("%+v", o.ends)
	}
}

// TestStartTimesUseTheClockOfTheOperator: the operator knows outages by its own clock.
func TestStartTimesUseTheClockOfTheOperator(t *testing.T) {
	for name, ahead := range map[string]time.Duration{
		"right": 0, "an hour late": time.Hour, "an hour ahead": -time.Hour, "in 1970": time.Since(time.Unix(86400, 0)),
	} {
		t.Run(name, func(t *testing.T) {
			o, begun := &operator{ahead: ahead}, time.Now()
			url, pin := serve(t, o)
			if err := run(t.Context(), o, url, pin, t.TempDir(), never); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if len(o.starts) != 2*trials {
				t.Fatal(o.starts)
			}
			for _, start := range o.starts {
				at, err := time.Parse(time.RFC3339Nano, start)
				if early, late := at.Before(begun.Add(ahead-2*time.Second)), at.After(time.Now().Add(ahead+2*time.Second)); err != nil || early || late {
					t.Error(start, err)
				}
			}
		})
	}
}

// TestFaultsNeitherLoseNorRepeatTrials cuts the network at requests, restarts the operator, and kills the member during
// trials, for 100 machines that join and measure.
func TestFaultsNeitherLoseNorRepeatTrials(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := mrand.New(mrand.NewPCG(seed, 1))
			o := &operator{}
			cuts, kills := 12, 3
			o.fault = func(*http.Request) fault {
				if random.IntN(4) == 0 {
					o.print()
				}
				happens := fault(random.IntN(4))
				if cuts == 0 || happens == none {
					return none
				}
				cuts--
				return happens
			}
			url, pin := serve(t, o)
			folder := t.TempDir()
			kill := func() bool {
				if kills == 0 || random.IntN(6) > 0 {
					return false
				}
				kills--
				return true
			}
			for {
				if err := run(t.Context(), o, url, pin, folder, kill); !errors.Is(err, errKilled) {
					break
				}
			}
			checkOnce(t, o)
			if len(o.missing()) > 0 {
				t.Errorf("missing: %v", o.missing())
			}
		})
	}
}

func TestDeletedWorkEndsAtTheNextTrial(t *testing.T) {
	o := &operator{}
	begun := 0
	o.fault = func(r *http.Request) fault {
		if strings.Contains(r.URL.Path, "/lines/") && o.attempt == 1 {
			o.attempt = 2 // the pod of the first one is deleted, and another one waits
		}
		return none
	}
	url, pin := serve(t, o)
	if err := run(t.Context(), o, url, pin, t.TempDir(), func() bool { begun++; return false }); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	checkOnce(t, o)
	if begun != trials+1 {
		t.Errorf("%d trials were begun, not %d and one that is discarded", begun, trials)
	}
}

func TestTokenIsValidForOneMachine(t *testing.T) {
	o := &operator{key: "of another machine"}
	url, pin := serve(t, o)
	err := run(t.Context(), o, url, pin, t.TempDir(), never)
	if err == nil || !strings.Contains(err.Error(), "another machine") {
		t.Error(err)
	}
}

func TestRestartNeedsNoToken(t *testing.T) {
	o, folder := &operator{}, t.TempDir()
	url, pin := serve(t, o)
	if err := run(t.Context(), o, url, pin, folder, never); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	o.key, o.counted, o.over = "of another machine", map[int]int{}, true // the token is of no use any more
	if err := run(t.Context(), o, url, pin, folder, never); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	checkOnce(t, o)
}

func TestOperatorWithAnotherKeyReceivesNothing(t *testing.T) {
	o := &operator{}
	url, _ := serve(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := run(ctx, o, url, "sha256//x", t.TempDir(), never); !errors.Is(err, context.DeadlineExceeded) || o.key != "" {
		t.Error(err, o.key)
	}
}

func TestNextStartDeliversAfterASignal(t *testing.T) {
	o, folder := &operator{}, t.TempDir()
	url, pin := serve(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	begun := 0
	err := run(ctx, o, url, pin, folder, func() bool {
		if begun++; begun == 3 {
			cancel()
		}
		return false
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := run(t.Context(), o, url, pin, folder, never); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	checkOnce(t, o)
	if len(o.ends) != 2 || o.ends[0].Failure == nil || o.ends[0].Failure.Reason != "Interrupted" {
		t.Errorf("%+v", o.ends)
	}
}

func TestTwoProcessesCannotShareAFolder(t *testing.T) {
	folder := t.TempDir()
	if _, err := Open(folder); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(folder); err == nil || !strings.Contains(err.Error(), "--state") {
		t.Error(err)
	}
}

func TestLossOfPowerLeavesWholeLines(t *testing.T) {
	kept := `{"a":1}` + "\n"
	for _, left := range []string{"", `{"b"`, "\x00\x00\x00", `{"b":` + "\n"} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, measured), []byte(kept+left), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := (&State{folder}).reopen()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(file)
		if err != nil || string(content) != kept {
			t.Errorf("%q: %q, %v", left, content, err)
		}
		file.Close()
	}
}
