package engine

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/payload"
)

// reported keeps the last trial.
type reported struct{ trial contract.Trial }

func (*reported) Started(int, bool, time.Time) error { return nil }

func (r *reported) Ended(trial contract.Trial) error {
	r.trial = trial
	return nil
}

// target returns a target with the engine `fake`, and the engine.
func target(t *testing.T, compression string) (*broker.Target, *Engine) {
	t.Helper()
	pool, err := payload.New("Random", 100, 1)
	if err != nil {
		t.Fatal(err)
	}
	made, err := New("fake", pool)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	port := listener.Addr().(*net.TCPAddr).Port
	driver := &Driver{Engine: made, Broker: Broker{Scheme: "mqtt", Host: "localhost", Port: port, Delivery: "AtMostOnce", Compression: compression, Encryption: "None"}}
	return &broker.Target{Options: &broker.Options{
		Driver: driver, Engine: made, Topic: "a", Pairs: 2, Role: broker.Both, Content: pool, Compression: "None", Encryption: "None",
		InFlight: 4, Messages: 5000, DeliveryTimeout: time.Minute, Ready: time.Minute, Tuning: broker.Light,
	}}, made
}

// outcome runs a trial, and returns why the series or the trial failed.
func outcome(t *testing.T, of *broker.Target) (*contract.Trial, *contract.Failure) {
	t.Helper()
	report := &reported{}
	err := of.Prepare(context.Background())
	if err == nil {
		err = of.Trial(context.Background(), report, 1, false)
	}
	var failure *contract.Failure
	if err != nil && !errors.As(err, &failure) {
		t.Fatal(err)
	}
	if failure == nil {
		failure = report.trial.Failure
	}
	return &report.trial, failure
}

func TestLoadOfAnEngineIsCountedLikeANativeLoad(t *testing.T) {
	install(t, "")
	of, program := target(t, "Own")
	for range 2 {
		trial, failure := outcome(t, of)
		exchange := trial.Exchange
		if failure != nil || exchange.Sent != 10_000 || exchange.Received != 10_000 || exchange.Duplicated+exchange.Errors+exchange.OutOfOrder != 0 {
			t.Fatalf("%+v, %+v", failure, exchange)
		}
		if exchange.SentBytes != 1_000_000 || exchange.ReceivedBytes != 1_000_000 || exchange.EncodedBytes != 100_000 || exchange.Cipher != "own" {
			t.Errorf("%+v", exchange)
		}
		if exchange.ConnectNanoseconds != 1000 || exchange.CompressNanoseconds != 4*5000 || trial.Client.CPUNanoseconds <= 0 || trial.Client.CPULimitMillicores > 1000 {
			t.Errorf("%+v, %+v", exchange, trial.Client)
		}
		if exchange.WireSentBytes == 0 {
			t.Errorf("further sockets are not counted: %+v", exchange)
		}
		if actual := trial.Distributions.RoundTripActual; actual.Count+exchange.Discarded != 10_000 || time.Duration(actual.Quantile(0.5)) > time.Minute {
			t.Errorf("%+v", actual)
		}
	}
	if maker := program.Maker(); maker.Name != "fake" || maker.Version != "1" {
		t.Errorf("%+v", maker)
	}
}

func TestEngineThatBreaksTheProtocolHasAReason(t *testing.T) {
	for of, wanted := range map[string]struct{ reason, says string }{
		"another clock":             {"EngineInvalid", "not CLOCK_MONOTONIC"},
		"another version":           {"EngineInvalid", "use images of one release"},
		"no hello":                  {"EngineInvalid", "first line is not hello"},
		"no JSON":                   {"EngineInvalid", "hello"},
		"a long line":               {"EngineInvalid", "more than 65536 bytes"},
		"a failed start":            {"EngineFailed", "exit status 3): no module named paho"},
		"no answer":                 {"EngineSilent", `did not answer "connect"`},
		"silence":                   {"EngineSilent", "for 2s"},
		"its own reason":            {"LicenseExpired", "renew it"},
		"it cannot continue":        {"LicenseExpired", "renew it"},
		"an invalid reason":         {"EngineInvalid", "CamelCase"},
		"an address without a port": {"EngineInvalid", "somewhere"},
		"a crash":                   {"EngineFailed", "exit status 3): out of memory"},
		"a gap":                     {"EngineInvalid", "where message 0 is next"},
		"one message too many":      {"EngineInvalid", "is next"},
		"a wrong number":            {"EngineInvalid", "and has reported"},
		"a time in the future":      {"EngineInvalid", "to now"},
		"an unknown connection":     {"EngineInvalid", "no connection 77"},
		"an unknown kind":           {"EngineInvalid", "kind 9"},
		"half a record":             {"EngineInvalid", "multiple of 24"},
	} {
		t.Run(of, func(t *testing.T) {
			install(t, of)
			one, program := target(t, "None")
			if wanted.reason == "EngineSilent" {
				program.timeout = 2 * time.Second
			}
			_, failure := outcome(t, one)
			if failure == nil || failure.Reason != wanted.reason || !strings.Contains(failure.Message, wanted.says) {
				t.Errorf("%+v", failure)
			}
		})
	}
}

func TestEngineWithoutSubscribersIsCountedByAcknowledgements(t *testing.T) {
	install(t, "")
	of, _ := target(t, "None")
	of.Options.Role, of.Options.Acknowledges, of.Options.Keeps = broker.Alone, true, true
	of.Options.Driver.(*Driver).Broker.Delivery = "AtLeastOnce"
	for number := 1; number <= 2; number++ {
		trial, failure := outcome(t, of)
		exchange := trial.Exchange
		if failure != nil || exchange.Sent != 10_000 || exchange.Acknowledged != 10_000 || exchange.AcknowledgedBytes != 1_000_000 || exchange.Arrivals != nil {
			t.Fatalf("%+v, %+v", failure, exchange)
		}
		if (exchange.Setup != nil) != (number == 1) {
			t.Errorf("trial %d: %+v", number, exchange.Setup)
		}
	}
	of.Close(context.Background())
}

func TestNextTrialRestartsAnEndedEngine(t *testing.T) {
	install(t, "a crash")
	of, _ := target(t, "None")
	for number := 1; number <= 2; number++ {
		if _, failure := outcome(t, of); failure == nil || failure.Reason != "EngineFailed" {
			t.Errorf("trial %d: %+v", number, failure)
		}
	}
	t.Setenv(fault, "")
	if trial, failure := outcome(t, of); failure != nil || trial.Exchange.Received != 10_000 {
		t.Errorf("%+v", failure)
	}
}

func TestUnsupportedSettingOfAnEngineIsRefused(t *testing.T) {
	install(t, "")
	of, _ := target(t, "Zstd")
	if _, failure := outcome(t, of); failure == nil || failure.Reason != "InvalidArguments" || !strings.Contains(failure.Message, "compression is Zstd") {
		t.Errorf("%+v", failure)
	}
}

// TestEngineThatStartsSlowlyIsUsed: a device may need longer to start Python than one attempt to connect takes.
func TestEngineThatStartsSlowlyIsUsed(t *testing.T) {
	install(t, "a slow start")
	of, program := target(t, "None")
	soon, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := program.process(soon)
	var failure *contract.Failure
	if err == nil || errors.As(err, &failure) {
		t.Fatalf("an engine that may still send hello has the result %v", err)
	}
	if trial, failure := outcome(t, of); failure != nil || trial.Exchange.Received != 10_000 {
		t.Errorf("%+v", failure)
	}
}

func TestMissingEngineIsNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	of, _ := target(t, "None")
	if _, failure := outcome(t, of); failure == nil || failure.Reason != "ProgramMissing" || !strings.Contains(failure.Message, "tierbench-engine-fake") {
		t.Errorf("%+v", failure)
	}
}

func TestLogOfAnEngineIsBounded(t *testing.T) {
	var out strings.Builder
	made := &log{out: &out}
	for range 1000 {
		if _, err := made.Write([]byte(strings.Repeat("x", 999) + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	if out.Len() < logBytes || out.Len() > logBytes+200 || len(made.kept) > tailBytes || len(made.tail()) > tailBytes+2 {
		t.Errorf("%d bytes, %d kept", out.Len(), len(made.kept))
	}
}
