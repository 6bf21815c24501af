package cli

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
)

// many is the number of messages of a load that takes a second or more, by delivery.
var many = map[string]int{"AtMostOnce": 50_000, "AtLeastOnce": 10_000, "ExactlyOnce": 5_000}

const (
	endless = 10_000_000                           // messages of a load that only a fault ends
	patient = "deliveryTimeoutMilliseconds=300000" // reached only if messages are lost
	limit   = "deadlineSeconds=400"                // of a load that a fault keeps from ending
)

func sendSignal(t *testing.T, process *exec.Cmd, which syscall.Signal) {
	t.Helper()
	if err := process.Process.Signal(which); err != nil {
		t.Fatal(err)
	}
}

func clientItself(clients []*client) *os.Process { return clients[0].Process }

func TestStrikeRestartedBrokerWithItsVolumeLosesNothing(t *testing.T) {
	t.Parallel()
	for _, delivery := range []string{"AtLeastOnce", "ExactlyOnce"} {
		t.Run(delivery, func(t *testing.T) {
			t.Parallel()
			broker := startMosquitto(t, later, "persistence true")
			outcome := broker.struck(t, broker.load(many[delivery], "delivery="+delivery, "asFastAsPossible", patient), func() { broker.restart(t) })
			exchange := outcome.only(t).Exchange
			if exchange.Lost != 0 || exchange.Reconnects < 2 || exchange.Sent%int64(many[delivery]) != 0 || exchange.ErrorCauses[contract.Disconnected] < 2 {
				t.Errorf("%+v", exchange)
			}
		})
	}
}

// TestStrikeClientsResubscribeToAKilledBroker loses the messages in flight, and waits for them until the timeout.
func TestStrikeClientsResubscribeToAKilledBroker(t *testing.T) {
	t.Parallel()
	for _, delivery := range []string{"AtMostOnce", "AtLeastOnce", "ExactlyOnce"} {
		t.Run(delivery, func(t *testing.T) {
			t.Parallel()
			broker := startMosquitto(t, later)
			of := broker.load(many[delivery], "delivery="+delivery, "asFastAsPossible", "deliveryTimeoutMilliseconds=15000")
			outcome := broker.struck(t, of, func() {
				broker.kill(t)
				broker.start(t)
			})
			exchange := outcome.only(t).Exchange
			if exchange.Reconnects != 2 || exchange.Sent != exchange.Received+exchange.Lost || exchange.Lost > exchange.Sent/2 {
				t.Errorf("%+v", exchange)
			}
			if exchange.Acknowledged > exchange.Sent || exchange.AcknowledgedLost > exchange.Lost {
				t.Errorf("%+v", exchange)
			}
		})
	}
}

func TestStrikeLostBrokerFailsItsTrials(t *testing.T) {
	t.Parallel()
	for _, delivery := range []string{"AtMostOnce", "AtLeastOnce", "ExactlyOnce"} {
		t.Run(delivery, func(t *testing.T) {
			t.Parallel()
			broker := startMosquitto(t, later)
			failsAllTrials(t, broker, 2, func() { broker.kill(t) }, "delivery="+delivery, "trials=1-2")
		})
	}
}

func TestStrikeBlockedBrokerFailsItsTrial(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	failsAllTrials(t, broker, 1, func() { sendSignal(t, broker.process, syscall.SIGSTOP) }, "sizeBytes=65536")
}

// failsAllTrials asserts that a fault of a broker soon fails all trials with BrokerUnreachable.
func failsAllTrials(t *testing.T, broker *mosquitto, trials int, fault func(), more ...string) {
	t.Helper()
	var since time.Time
	one := strike{
		loads: []load{broker.load(endless, append(more, "asFastAsPossible", "deliveryTimeoutMilliseconds=2000")...)}, trial: 1, freeze: clientItself,
		fault: func([]*client) {
			fault()
			since = time.Now()
		},
	}
	outcome := one.run(t)[0]
	if took := time.Since(since); outcome.code != 0 || outcome.seal.Failure != nil || len(outcome.trials) != trials || took > soon {
		t.Fatalf("exit code %d, %d trials, %+v, after %v", outcome.code, len(outcome.trials), outcome.seal.Failure, took)
	}
	for _, trial := range outcome.trials {
		if trial.Outcome != contract.Failed || trial.Failure.Reason != "BrokerUnreachable" || trial.Exchange.Sent != trial.Exchange.Received+trial.Exchange.Lost {
			t.Errorf("%s, %+v, %+v", trial.Outcome, trial.Failure, trial.Exchange)
		}
	}
}

func TestTerminationEndsALoad(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	of := broker.load(endless, "messagesPerSecond=100")
	client := launch(t, of.arguments(1)...)
	eventually(t, "the load has begun", of.begun)
	terminates(t, client)
}

// terminates asserts that a client ends soon after a signal, and reports it.
func terminates(t *testing.T, client *client) {
	t.Helper()
	sendSignal(t, client.Cmd, syscall.SIGTERM)
	since := time.Now()
	outcome := client.ended(t)
	if took := time.Since(since); outcome.code != exitInterrupted || outcome.seal.Failure == nil || outcome.seal.Failure.Reason != "Interrupted" || took > soon {
		t.Errorf("exit code %d, %+v, after %v", outcome.code, outcome.seal.Failure, took)
	}
}

func TestTerminationEndsALoadInAnyStateOfTheBroker(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*testing.T, *mosquitto){
		"gone": func(t *testing.T, broker *mosquitto) { broker.kill(t) },
		"frozen": func(t *testing.T, broker *mosquitto) {
			stop(t, broker.process.Process)
			before := -1
			eventually(t, "the broker's socket is full", func() bool {
				now := unread(t, broker.port)
				full := now == before
				before = now
				time.Sleep(100 * time.Millisecond)
				return full
			})
		},
	} {
		for _, delivery := range []string{"AtMostOnce", "AtLeastOnce"} {
			t.Run(name+" "+delivery, func(t *testing.T) {
				t.Parallel()
				broker := startMosquitto(t, later)
				of := broker.load(endless, "delivery="+delivery, "asFastAsPossible", "sizeBytes=65536", patient)
				client := launch(t, of.arguments(1)...)
				eventually(t, "the load has begun", of.begun)
				fault(t, broker)
				sendSignal(t, client.Cmd, syscall.SIGTERM)
				since := time.Now()
				outcome := client.ended(t)
				if took := time.Since(since); took > soon {
					t.Errorf("the client ended after %v", took)
				}
				failed := len(outcome.trials) == 1 && outcome.trials[0].Outcome == contract.Failed // before the signal
				if !failed && (outcome.code != exitInterrupted || outcome.seal.Failure == nil || outcome.seal.Failure.Reason != "Interrupted") {
					t.Errorf("exit code %d, %+v, %+v", outcome.code, outcome.seal.Failure, outcome.trials)
				}
			})
		}
	}
}
