package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/contracttest"
	"tierbench.io/client/internal/sockdiag"
)

const (
	soon      = 2 * time.Minute  // longer than a client takes to end on a busy machine, and shorter than a load
	reaching  = 20 * time.Second // for a load to reach a frozen process
	loadBytes = 20_000           // more than a client sends before its load
	ackBytes  = 1000             // more than acknowledgements of a load have
)

// strike is a fault during a trial of each client. A process is frozen first, so that the trials cannot end, however
// slow the machine is. If a trial ended before the fault, the strike is repeated with a larger load. What a test
// asserts is not repeated. The names of such tests begin with TestStrike, so that they can be repeated alone.
type strike struct {
	loads  []load
	trial  int                                 // of each client that is struck, from 1
	freeze func(clients []*client) *os.Process // a server, or a client
	shows  func() bool                         // whether a load has reached the frozen process; nil: not checked
	fault  func(clients []*client)
}

// load returns the arguments of a client for a load that is a number of times as large, and whether the load has begun.
type load struct {
	arguments func(times int) []string
	begun     func() bool
}

// outcome is what a client printed until its end.
type outcome struct {
	code   int
	trials []contract.Trial
	seal   contract.Seal
}

// only returns the single trial of a client that succeeded.
func (s *outcome) only(t *testing.T) contract.Trial {
	t.Helper()
	if s.code != 0 || len(s.trials) != 1 {
		t.Fatalf("exit code %d, %d trials, %+v", s.code, len(s.trials), s.seal.Failure)
	}
	return s.trials[0]
}

// run returns the outcomes of clients whose trials were struck.
func (s *strike) run(t *testing.T) []outcome {
	t.Helper()
	for times := 1; times <= 16; times *= 4 {
		all, missed := s.try(t, times)
		if missed == "" {
			return all
		}
		t.Logf("not struck with %d times the load: %s", times, missed)
	}
	t.Fatal("not struck")
	return nil
}

// try returns the outcomes of the clients, or the reason why their trials were not struck.
func (s *strike) try(t *testing.T, times int) (all []outcome, missed string) {
	t.Helper()
	var clients []*client
	for _, one := range s.loads {
		clients = append(clients, launch(t, one.arguments(times)...))
	}
	defer func() {
		for _, one := range clients {
			_ = one.Process.Signal(syscall.SIGTERM)
			_ = one.Wait()
		}
	}()
	eventually(t, "every load has begun", func() bool {
		for index, one := range s.loads {
			if !clients[index].isOver(t, s.trial) && !one.begun() {
				return false
			}
		}
		return true
	})
	frozen := s.freeze(clients)
	defer func() { _ = frozen.Signal(syscall.SIGCONT) }()
	stop(t, frozen)
	for late := time.Now().Add(reaching); s.shows != nil && !s.shows(); time.Sleep(time.Millisecond) {
		if time.Now().After(late) || s.isOver(t, clients) {
			return nil, "no load reached the frozen process"
		}
	}
	if s.isOver(t, clients) {
		return nil, "a trial ended before the fault"
	}
	from := time.Now()
	s.fault(clients)
	to := time.Now()
	_ = frozen.Signal(syscall.SIGCONT)
	for _, one := range clients {
		all = append(all, one.ended(t))
	}
	for _, one := range all {
		if !one.wasStruck(t, s.trial, from, to) {
			missed = "by the client's clock the fault was outside its trial"
		}
	}
	return all, missed
}

func (s *strike) isOver(t *testing.T, clients []*client) bool {
	t.Helper()
	return slices.ContainsFunc(clients, func(one *client) bool { return one.isOver(t, s.trial) })
}

// wasStruck reports, by the client's own clock, whether a trial began before the fault and ended after it. A failed
// trial was reported after the fault began.
func (s *outcome) wasStruck(t *testing.T, trial int, from, to time.Time) bool {
	t.Helper()
	if len(s.trials) < trial {
		return true // it was interrupted
	}
	one := s.trials[trial-1]
	started, err := time.Parse(time.RFC3339Nano, one.StartTime)
	if err != nil {
		t.Fatal(err)
	}
	took := one.DurationNanoseconds
	if one.Exchange != nil {
		took = one.Exchange.SessionNanoseconds
	}
	return started.Before(from) && (one.Outcome == contract.Failed || started.Add(time.Duration(took)).After(to))
}

// client is a process whose output can be read while it runs.
type client struct {
	*exec.Cmd
	out, log string
}

func launch(t *testing.T, arguments ...string) *client {
	t.Helper()
	made := &client{out: filepath.Join(t.TempDir(), "out"), log: filepath.Join(t.TempDir(), "log")}
	out, err := os.Create(made.out)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	made.Cmd = process(t, out, append(arguments, "--output=json", "--termination-log="+made.log)...)
	return made
}

func (c *client) ended(t *testing.T) outcome {
	t.Helper()
	code := exitCode(t, c.Cmd)
	trials, seal := contracttest.Check(t, read(t, c.out), read(t, c.log))
	return outcome{code, trials, seal}
}

func (c *client) isOver(t *testing.T, trial int) bool {
	t.Helper()
	return bytes.Count(read(t, c.out), []byte(`"record":"Trial",`)) >= trial
}

var still = regexp.MustCompile(`\) [TZ] `) // the state of a thread that is frozen, or of a process that has ended

// stop freezes a process, and returns when none of its threads runs.
func stop(t *testing.T, process *os.Process) {
	t.Helper()
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process is frozen", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, thread := range threads {
			if state, err := os.ReadFile(thread); err == nil && !still.Match(state) {
				return false
			}
		}
		return true
	})
}

// received returns how many bytes have arrived at a port by its established connections.
func received(port int) (total uint64) {
	for _, one := range sockdiag.NewWatch(func(local, _ uint16) bool { return int(local) == port }).Look() {
		if one.Established {
			total += one.Info.Bytes_received
		}
	}
	return total
}

// unread returns how many bytes have arrived at a port, and were not read by its server.
func unread(t *testing.T, port int) (total int) {
	t.Helper()
	for line := range strings.Lines(string(read(t, "/proc/net/tcp")) + string(read(t, "/proc/net/tcp6"))) {
		fields := strings.Fields(line)
		if len(fields) < 5 || !strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) || fields[3] == "0A" {
			continue
		}
		var sent, waits int
		if _, err := fmt.Sscanf(fields[4], "%X:%X", &sent, &waits); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		total += waits
	}
	return total
}
