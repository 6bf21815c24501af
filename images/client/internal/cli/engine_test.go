package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// withExamples adds the example engines to PATH.
func withExamples(t *testing.T) {
	t.Helper()
	folder, err := filepath.Abs("../../../../examples/engine")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", os.Getenv("PATH")+":"+folder)
}

// TestExampleEngineMeasures runs an engine that needs only docs/reference/engine-protocol.md.
func TestExampleEngineMeasures(t *testing.T) {
	withExamples(t)
	broker := startMosquitto(t, later)
	for _, pace := range []string{"inFlight=4", "messagesPerSecond=1000", "asFastAsPossible"} {
		for _, trial := range measured(t, broker.arguments("None", "engine=example", "pairs=2", "messages=500", "trials=1-2", "connections=Kept", "maxInFlight=64", pace)...) {
			exchange := trial.Exchange
			if exchange.Received != 1000 || exchange.ReceivedBytes != 1000*1024 || exchange.EncodedBytes != 1000*1024 || exchange.Duplicated+exchange.Errors != 0 {
				t.Errorf("%s: %+v", pace, exchange)
			}
			if trial.Distributions.RoundTrip.Count+exchange.Discarded != 1000 || trial.Client.CPULimitMillicores > 1000 {
				t.Errorf("%s: %+v", pace, trial.Client)
			}
		}
	}
}

func TestExampleEnginePublishesWithoutSubscribers(t *testing.T) {
	withExamples(t)
	arguments := startMosquitto(t, later).arguments("None", "engine=example", "role=Alone", "messages=500", "asFastAsPossible")
	if exchange := measured(t, arguments...)[0].Exchange; exchange.Acknowledged != 500 || exchange.AcknowledgedBytes != 500*1024 {
		t.Errorf("%+v", exchange)
	}
}

func TestExampleEngineEchoes(t *testing.T) {
	withExamples(t)
	echoesComeBack(t, "connections=Kept", "engine=example", "delivery=AtMostOnce")
}

func TestSealNamesTheEngine(t *testing.T) {
	withExamples(t)
	broker := startMosquitto(t, later)
	code, _, seal := sealed(t, broker.arguments("None", "engine=example", "inFlight=1", "messages=1")...)
	if code != 0 || seal.Engine.Name != "example" || seal.Engine.Version != "1" {
		t.Errorf("exit code %d, %+v", code, seal.Engine)
	}
	code, _, seal = sealed(t, broker.arguments("None", "engine=example", "inFlight=1", "messages=1", "delivery=AtLeastOnce")...)
	if code != exitFailure || seal.Failure == nil || seal.Failure.Reason != "InvalidArguments" {
		t.Errorf("exit code %d, %+v", code, seal.Failure)
	}
	code, _, seal = sealed(t, broker.arguments("None", "engine=../example", "inFlight=1", "messages=1")...)
	if code != exitFailure || seal.Failure == nil || seal.Failure.Reason != "InvalidArguments" {
		t.Errorf("exit code %d, %+v", code, seal.Failure)
	}
}
