package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/contracttest"
)

// keepsConnections holds that only the first trial connects, in every delivery and with a pair's sides together or without
// subscribers.
func keepsConnections(t *testing.T, arguments func(tls string, more ...string) []string) {
	for _, delivery := range []string{"AtMostOnce", "AtLeastOnce", "ExactlyOnce"} {
		for role, connections := range map[string]int64{"Both": 4, "Alone": 2} {
			t.Run(delivery+" "+role, func(t *testing.T) {
				load := []string{"--keep-connections", "--role=" + role, "--delivery=" + delivery, "--pairs=2", "--messages=30", "--as-fast-as-possible", "--warmup=1", "--trials=1-3"}
				for index, trial := range measured(t, arguments("TLSv1.3", load...)...) {
					exchange := trial.Exchange
					if exchange.Connections != connections || (exchange.Setup != nil) != (index == 0) || exchange.Errors+exchange.Reconnects+exchange.Retried != 0 {
						t.Errorf("trial %d: %+v", index, exchange)
					}
					if role == "Both" && (exchange.Received != 60 || exchange.Duplicated+exchange.OutOfOrder != 0) || role == "Alone" && exchange.Acknowledged != 60 {
						t.Errorf("trial %d: %+v", index, exchange)
					}
					if wire := exchange.WireSentBytes + exchange.WireReceivedBytes; wire < exchange.LoadBytes || exchange.Cipher == "" {
						t.Errorf("trial %d: %+v", index, exchange)
					}
				}
			})
		}
	}
}

func TestConnectionsOfMosquittoAreKept(t *testing.T) {
	t.Parallel()
	keepsConnections(t, startMosquitto(t, later).arguments)
}

func TestAKeptConnectionThatBreaksOffWhileAnotherBrokerIsMeasuredIsMadeAnew(t *testing.T) {
	t.Parallel()
	first, other := startMosquitto(t, later), startMosquitto(t, later)
	folder := t.TempDir()
	log, path := filepath.Join(folder, "log"), filepath.Join(folder, "out")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	arguments := first.arguments("None", fmt.Sprintf("--url=mqtt://127.0.0.1:%d", other.port), "--keep-connections", "--delivery=AtLeastOnce",
		"--messages-per-second=100", "--duration-seconds=2", "--case=1", "--case=2", "--trials=1:1,2:1,1:2", "--output=json", "--termination-log="+log)
	client := process(t, out, arguments...)
	eventually(t, "the other broker's trial has begun", func() bool { return bytes.Count(read(t, path), []byte("TrialStarted")) == 2 })
	first.restart(t)
	code := exitCode(t, client)
	trials, _ := contracttest.Check(t, read(t, path), read(t, log))
	if code != 0 || len(trials) != 3 {
		t.Fatalf("exit code %d, %d trials", code, len(trials))
	}
	for index, anew := range []int64{0, 0, 2} {
		exchange := trials[index].Exchange
		if exchange.Received != exchange.Sent || exchange.Reconnects != anew || exchange.ErrorCauses[contract.Disconnected] != anew {
			t.Errorf("trial %d: %+v", index, exchange)
		}
	}
}
