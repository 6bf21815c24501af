package cli

import (
	"fmt"
	"os"
	"testing"

	"tierbench.io/client/internal/contract"
)

// keepsConnections asserts that only the first trial connects, with subscribers and without.
func keepsConnections(t *testing.T, arguments func(tls string, more ...string) []string, deliveries ...string) {
	for _, delivery := range deliveries {
		for role, connections := range map[string]int64{"Both": 4, "Alone": 2} {
			t.Run(delivery+" "+role, func(t *testing.T) {
				load := []string{"connections=Kept", "role=" + role, "delivery=" + delivery, "pairs=2", "messages=30", "asFastAsPossible", "warmupTrials=1", "trials=1-3"}
				for index, trial := range measured(t, arguments("TLSv1.3", load...)...) {
					exchange := trial.Exchange
					if exchange.Connections != connections || (exchange.Setup != nil) != (index == 0) || exchange.Errors+exchange.Reconnects != 0 {
						t.Errorf("trial %d: %+v", index, exchange)
					}
					if delivery != "ExactlyOnce" && exchange.Retried != 0 { // a slow broker may ask to wait for the previous transaction
						t.Errorf("trial %d: %d retried", index, exchange.Retried)
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

func TestMosquittoConnectionsAreKept(t *testing.T) {
	t.Parallel()
	keepsConnections(t, startMosquitto(t, later).arguments, "AtMostOnce", "AtLeastOnce", "ExactlyOnce")
}

// TestStrikeBrokenKeptConnectionReconnects breaks the connection while another broker is measured.
func TestStrikeBrokenKeptConnectionReconnects(t *testing.T) {
	t.Parallel()
	first, other := startMosquitto(t, later), startMosquitto(t, later)
	of := first.load(100, fmt.Sprintf("url=mqtt://127.0.0.1:%d", other.port), "connections=Kept", "delivery=AtLeastOnce",
		"messagesPerSecond=100", "case=1", "case=2", "trials=1:1,2:1,1:2", patient)
	of.begun = func() bool { return received(other.port) > loadBytes }
	one := strike{
		loads: []load{of}, trial: 2, freeze: func([]*client) *os.Process { return other.process.Process },
		shows: func() bool { return unread(t, other.port) > ackBytes }, fault: func([]*client) { first.restart(t) },
	}
	outcome := one.run(t)[0]
	if outcome.code != 0 || len(outcome.trials) != 3 {
		t.Fatalf("exit code %d, %d trials", outcome.code, len(outcome.trials))
	}
	for index, again := range []int64{0, 0, 2} {
		exchange := outcome.trials[index].Exchange
		if exchange.Received != exchange.Sent || exchange.Reconnects != again || exchange.ErrorCauses[contract.Disconnected] != again {
			t.Errorf("trial %d: %+v", index, exchange)
		}
	}
}
