package cli

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	exchange "tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/engine"
	"tierbench.io/client/internal/payload"
)

// installSINETStream puts the engine SINETStream into the folder of engines, with its libraries.
func installSINETStream(t *testing.T) {
	t.Helper()
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	libraries := filepath.Join(root, "build/sinetstream")
	if output, err := exec.Command(filepath.Join(root, "tools/sinetstream"), libraries).CombinedOutput(); err != nil {
		t.Fatalf("tools/sinetstream: %v %s", err, output)
	}
	path := strings.Join([]string{libraries, root + "/images/engine/src", root + "/images/sinetstream/src"}, ":")
	launcher := fmt.Sprintf("#!/bin/sh\nPYTHONPATH=%s exec python3 -m tierbench_sinetstream.main\n", path)
	if err := os.WriteFile(filepath.Join(engines, "tierbench-engine-sinetstream"), []byte(launcher), 0o755); err != nil {
		t.Fatal(err)
	}
}

// kafkaSINETStream sends by the library's plugin for Kafka, which knows Kafka up to 2.6 by name.
func kafkaSINETStream(t *testing.T, broker *kafkaBroker) {
	installSINETStream(t)
	trials := measured(t, broker.arguments("TLSv1.3", "engine=sinetstream", "delivery=AtLeastOnce", "messages=20", "inFlight=1",
		"compression=Gzip", "content=SensorJSON", "encryption=AES128GCM", "trials=1-2", "connections=Kept")...)
	for _, trial := range trials {
		exchange := trial.Exchange
		if exchange.Received != 20 || exchange.Acknowledged != 20 || exchange.ReceivedBytes != 20*1024 || exchange.Duplicated+exchange.Errors+exchange.Reconnects != 0 {
			t.Errorf("%+v", exchange)
		}
		if exchange.LoadBytes < 2*exchange.EncodedBytes || exchange.WireReceivedBytes < exchange.EncodedBytes {
			t.Errorf("%+v", exchange)
		}
	}
	if exchange := trials[0].Exchange; exchange.TLSNanoseconds == 0 || exchange.ConnectNanoseconds == 0 {
		t.Errorf("%+v", exchange.Setup)
	}
	alone := broker.arguments("None", "engine=sinetstream", "delivery=AtMostOnce", "role=Alone", "messages=20", "asFastAsPossible")
	if exchange := measured(t, alone...)[0].Exchange; exchange.Acknowledged != 20 {
		t.Errorf("%+v", exchange)
	}
	code, _, seal := sealed(t, broker.arguments("None", "engine=sinetstream", "delivery=ExactlyOnce", "messages=1", "inFlight=1")...)
	if code != exitFailure || seal.Failure == nil || seal.Failure.Reason != "InvalidArguments" {
		t.Errorf("exit code %d, %+v", code, seal.Failure)
	}
}

// kafkaRefusesConnections asserts that a topic is deleted although the broker accepts no connections at the end of a
// load.
func kafkaRefusesConnections(t *testing.T, broker *kafkaBroker) {
	installSINETStream(t)
	proxy := tapped(t, broker.port)
	arguments := instead(broker.arguments("None", "engine=sinetstream", "topic=tierbench/shut", "messages=300", "messagesPerSecond=100"), "url=kafka://"+proxy.address)
	loaded := launch(t, arguments...)
	eventually(t, "the load has begun", func() bool {
		log, err := os.Stat(broker.folder + "/data/tierbench.shut.t1.0-0/00000000000000000000.log")
		return err == nil && log.Size() > loadBytes
	})
	proxy.shut()
	outcome := loaded.ended(t)
	if exchange := outcome.only(t).Exchange; exchange.Received != 300 {
		t.Errorf("%+v", exchange)
	}
}

func kafkaSINETStreamCreatesLate(t *testing.T, broker *kafkaBroker) {
	installSINETStream(t)
	pool, err := payload.New("Random", 100, 1)
	if err != nil {
		t.Fatal(err)
	}
	program, err := engine.New("sinetstream", pool)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(program.Close)
	createsLate(t, broker, func(address string) exchange.Driver {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		number, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		return &engine.Driver{Engine: program, Broker: engine.Broker{
			Scheme: "kafka", Host: host, Port: number, TLS: "None", Delivery: "AtLeastOnce", Compression: "None", Encryption: "None",
		}}
	})
}
