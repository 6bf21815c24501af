package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/contracttest"
)

// soon is far from both: how long an end takes on a busy machine, and how long the load would go on.
const soon = 30 * time.Second

// loading starts `broker` with a load that has begun when it returns; `ended` gives what it said, once it has ended.
func loading(t *testing.T, broker *mosquitto, arguments ...string) (client *exec.Cmd, ended func() (int, []contract.Trial, contract.Seal)) {
	t.Helper()
	folder := t.TempDir()
	log, path := filepath.Join(folder, "log"), filepath.Join(folder, "out")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	client = process(t, out, broker.arguments("None", append(arguments, "--output=json", "--termination-log="+log)...)...)
	eventually(t, "the trial has begun", func() bool { return bytes.Contains(read(t, path), []byte("TrialStarted")) })
	connecting := ticks(t, broker.process.Process.Pid)
	eventually(t, "the load has begun", func() bool { return ticks(t, broker.process.Process.Pid) > connecting+3 })
	return client, func() (int, []contract.Trial, contract.Seal) {
		code := exitCode(t, client)
		trials, seal := contracttest.Check(t, read(t, path), read(t, log))
		return code, trials, seal
	}
}

func (m *mosquitto) kill(t *testing.T) {
	t.Helper()
	if err := m.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = m.process.Wait()
}

func tell(t *testing.T, process *exec.Cmd, which syscall.Signal) {
	t.Helper()
	if err := process.Process.Signal(which); err != nil {
		t.Fatal(err)
	}
}

func TestABrokerThatForgetsIsSubscribedToAnew(t *testing.T) {
	t.Parallel()
	for _, delivery := range []string{"AtMostOnce", "AtLeastOnce", "ExactlyOnce"} {
		t.Run(delivery, func(t *testing.T) {
			t.Parallel()
			broker := startMosquitto(t, later)
			_, ended := loading(t, broker, "--delivery="+delivery, "--messages-per-second=2000", "--duration-seconds=4", "--patience-milliseconds=2000")
			broker.kill(t)
			broker.start(t)
			code, trials, _ := ended()
			exchange := trials[0].Exchange
			if code != 0 || exchange.Reconnects != 2 || exchange.Sent != exchange.Received+exchange.Lost || exchange.Lost > exchange.Sent/2 {
				t.Errorf("exit code %d, %+v", code, exchange)
			}
			if exchange.Acknowledged > exchange.Sent || exchange.AcknowledgedLost > exchange.Lost {
				t.Errorf("%+v", exchange)
			}
		})
	}
}

func TestABrokerThatStaysAwayFailsTheTrial(t *testing.T) {
	t.Parallel()
	for _, delivery := range []string{"AtMostOnce", "AtLeastOnce", "ExactlyOnce"} {
		t.Run(delivery, func(t *testing.T) {
			t.Parallel()
			broker := startMosquitto(t, later)
			_, ended := loading(t, broker, "--delivery="+delivery, "--as-fast-as-possible", "--messages=10000000", "--patience-milliseconds=500", "--trials=1-2")
			broker.kill(t)
			away := time.Now()
			code, trials, seal := ended()
			if took := time.Since(away); code != 0 || seal.Failure != nil || len(trials) != 2 || took > soon {
				t.Fatalf("exit code %d, %d trials, %+v, after %v", code, len(trials), seal.Failure, took)
			}
			for _, trial := range trials {
				if trial.Outcome != contract.Failed || trial.Failure.Reason != "BrokerUnreachable" || trial.Exchange.Sent != trial.Exchange.Received+trial.Exchange.Lost {
					t.Errorf("%s, %+v, %+v", trial.Outcome, trial.Failure, trial.Exchange)
				}
			}
		})
	}
}

func TestATerminationEndsALoadWhateverTheBrokerDoes(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*testing.T, *mosquitto){
		"gone": func(t *testing.T, broker *mosquitto) { broker.kill(t) },
		"frozen": func(t *testing.T, broker *mosquitto) {
			tell(t, broker.process, syscall.SIGSTOP)
		},
	} {
		for _, delivery := range []string{"AtMostOnce", "AtLeastOnce"} {
			t.Run(name+" "+delivery, func(t *testing.T) {
				t.Parallel()
				broker := startMosquitto(t, later)
				client, ended := loading(t, broker, "--delivery="+delivery, "--as-fast-as-possible", "--duration-seconds=600", "--size=65536")
				fault(t, broker)
				time.Sleep(time.Second / 2) // until sockets and queues are full, which nothing tells
				tell(t, client, syscall.SIGTERM)
				told := time.Now()
				code, _, seal := ended()
				if took := time.Since(told); code != exitInterrupted || seal.Failure == nil || seal.Failure.Reason != "Interrupted" || took > soon {
					t.Errorf("exit code %d, %+v, after %v", code, seal.Failure, took)
				}
			})
		}
	}
}

func TestABrokerThatTakesNothingMoreFailsTheTrial(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	_, ended := loading(t, broker, "--as-fast-as-possible", "--messages=10000000", "--size=65536", "--patience-milliseconds=500", "--trials=1-1")
	tell(t, broker.process, syscall.SIGSTOP)
	frozen := time.Now()
	_, trials, _ := ended()
	if took := time.Since(frozen); len(trials) != 1 || trials[0].Outcome != contract.Failed || trials[0].Failure.Reason != "BrokerUnreachable" || took > soon {
		t.Errorf("%+v after %v", trials, took)
	}
}
