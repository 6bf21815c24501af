package cli

import (
	"fmt"
	"testing"

	"tierbench.io/client/internal/contract"
)

var levels = map[string]byte{"3.1.1": 4, "5": 5}

func TestConnectPacketHasTheMQTTVersion(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	for version, level := range levels {
		proxy := tapped(t, broker.port)
		arguments := instead(broker.arguments("None", "mqtt.version="+version, "delivery=ExactlyOnce", "messages=20", "inFlight=2"), "url=mqtt://"+proxy.address)
		exchange := measured(t, arguments...)[0].Exchange
		if exchange.Received != 20 || exchange.Acknowledged != 20 || exchange.Errors+exchange.Duplicated != 0 {
			t.Errorf("%s: %+v", version, exchange)
		}
		for _, ending := range []string{"-p", "-s"} {
			passed := proxy.of(ending)
			if len(passed) == 0 {
				t.Fatalf("%s: no client %s", version, ending)
			}
			if found, _ := parseConnect(passed[0].sent.Bytes()); found != level {
				t.Errorf("%s: CONNECT has version %d", version, found)
			}
		}
	}
}

func TestMqtt5CountsEveryMessage(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	for _, delivery := range []string{"AtMostOnce", "AtLeastOnce", "ExactlyOnce"} {
		for _, more := range [][]string{{"tuning=Light", "inFlight=2"}, {"asFastAsPossible", "connections=Kept"}, {"role=Alone", "asFastAsPossible"}} {
			t.Run(delivery+" "+more[0], func(t *testing.T) {
				load := append(more, "mqtt.version=5", "delivery="+delivery, "messages=300", "pairs=2", "trials=1-2")
				for _, trial := range measured(t, broker.arguments("TLSv1.3", load...)...) {
					exchange := trial.Exchange
					if exchange.Errors+exchange.Retried+exchange.Reconnects != 0 || exchange.Sent != 600 || exchange.Cipher == "" {
						t.Errorf("%+v", exchange)
					}
					if exchange.Arrivals != nil && (exchange.Received != 600 || exchange.Duplicated+exchange.OutOfOrder != 0) {
						t.Errorf("%+v", exchange)
					}
					if acknowledged := exchange.Acknowledged == 600; acknowledged != (delivery != "AtMostOnce" || exchange.Arrivals == nil) {
						t.Errorf("%d acknowledged", exchange.Acknowledged)
					}
				}
			})
		}
	}
}

// TestMqtt5AddsOneByteToEachPublish: a PUBLISH has the length of its properties, and acknowledgements do not grow.
func TestMqtt5AddsOneByteToEachPublish(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	const messages = 100
	sent := map[string]int64{}
	for version := range levels {
		exchange := light(t, broker, "ExactlyOnce", "None", "mqtt.version="+version, "inFlight=1", fmt.Sprintf("messages=%d", messages))
		sent[version] = exchange.LoadBytes - segmentHeaders*exchange.LoadPackets
	} // the answer to the last message may come too late to count, and may have a reason code
	if more := sent["5"] - sent["3.1.1"]; more < 2*messages-20 || more > 2*messages+20 {
		t.Errorf("%d messages take %d bytes more", messages, more)
	}
}

func TestMqtt5RefusalHasItsReason(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	wrong := instead(broker.arguments("None", "mqtt.version=5", "messages=1", "inFlight=1"), "passwordFile="+broker.folder+"/wrong")
	if _, _, seal := sealed(t, wrong...); seal.Failure == nil || seal.Failure.Reason != "CredentialsRefused" {
		t.Errorf("%+v", seal.Failure)
	}
}

func TestStrikeRestartedBrokerLosesNothingInMqtt5(t *testing.T) {
	t.Parallel()
	for _, delivery := range []string{"AtLeastOnce", "ExactlyOnce"} {
		t.Run(delivery, func(t *testing.T) {
			t.Parallel()
			broker := startMosquitto(t, later, "persistence true")
			of := broker.load(many[delivery], "mqtt.version=5", "delivery="+delivery, "asFastAsPossible", patient)
			outcome := broker.struck(t, of, func() { broker.restart(t) })
			exchange := outcome.only(t).Exchange
			if exchange.Lost != 0 || exchange.Reconnects < 2 || exchange.Sent%int64(many[delivery]) != 0 || exchange.ErrorCauses[contract.Disconnected] < 2 {
				t.Errorf("%+v", exchange)
			}
		})
	}
}
