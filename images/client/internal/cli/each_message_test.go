package cli

import (
	"bytes"
	"testing"

	"tierbench.io/client/internal/contract"
)

const synOptions = 8 // bytes in a SYN on loopback, each way, in addition to timestamps

var eachMessage = []string{"connections=EachMessage", "messages=20", "sizeBytes=100", "tuning=Light"}

// TestEachMessageHasAConnection compares the kernel's counters with the bytes that pass a proxy.
func TestEachMessageHasAConnection(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	for version, level := range levels {
		for delivery, pace := range map[string]string{"AtMostOnce": "asFastAsPossible", "AtLeastOnce": "unacknowledged=1", "ExactlyOnce": "messagesPerSecond=100"} {
			t.Run(version+" "+delivery, func(t *testing.T) {
				t.Parallel()
				proxy := tapped(t, broker.port)
				load := append(eachMessage, "mqtt.version="+version, "role=Alone", "delivery="+delivery, "topic=each/"+version+"/"+delivery, pace)
				trial := measured(t, instead(broker.arguments("None", load...), "url=mqtt://"+proxy.address)...)[0]
				exchange, times := trial.Exchange, trial.Distributions.Acknowledge
				if times != nil && times.SumNanoseconds < 20*exchange.ConnectNanoseconds {
					t.Errorf("%d ns until the acknowledgements do not contain connecting: %+v", times.SumNanoseconds, exchange)
				}
				if exchange.Acknowledged != 20 || exchange.Connections != 20 || exchange.Errors+exchange.Reconnects+exchange.Retried != 0 {
					t.Errorf("%+v", exchange)
				}
				passed := proxy.of("-t1-0-p")
				var sent, received int64
				for _, one := range passed {
					if found, _ := parseConnect(one.sent.Bytes()); found != level || !bytes.HasSuffix(one.sent.Bytes(), []byte{0xe0, 0}) {
						t.Errorf("version %d, and the end %x", found, one.sent.Bytes()[one.sent.Len()-2:])
					}
					sent, received = sent+int64(one.sent.Len()), received+int64(one.received.Len())
				}
				if len(passed) != 20 {
					t.Errorf("%d connections", len(passed))
				}
				headers := func(packets int64) int64 { return segmentHeaders*packets + 20*synOptions }
				if exchange.WireSentBytes != sent+headers(exchange.WireSentPackets) || exchange.WireReceivedBytes != received+headers(exchange.WireReceivedPackets) {
					t.Errorf("%d and %d bytes have passed: %+v", sent, received, exchange)
				}
				containsSetup(t, exchange)
			})
		}
	}
}

// containsSetup asserts that the load contains the setup of its connections, and more.
func containsSetup(t *testing.T, exchange *contract.Exchange) {
	t.Helper()
	packets, bytes := exchange.WireSentPackets+exchange.WireReceivedPackets, exchange.WireSentBytes+exchange.WireReceivedBytes
	if exchange.LoadBytes != bytes || exchange.LoadPackets != packets {
		t.Errorf("the load does not contain all packets: %+v", exchange)
	}
	// SYN, SYN-ACK and ACK; CONNECT and CONNACK. Then PUBLISH and DISCONNECT, FIN both ways and an ACK.
	if exchange.SetupPackets < 5*20 || exchange.LoadPackets < exchange.SetupPackets+5*20 || exchange.SetupBytes >= exchange.LoadBytes {
		t.Errorf("%+v", exchange)
	}
	if exchange.ConnectNanoseconds == 0 {
		t.Errorf("%+v", exchange)
	}
}

func TestSubscribersKeepTheirConnection(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	var setup []int64
	for _, tls := range []string{"None", "TLSv1.3"} {
		load := append(eachMessage, "inFlight=1", "delivery=ExactlyOnce", "pairs=2")
		exchange := measured(t, broker.arguments(tls, load...)...)[0].Exchange
		if exchange.Received != 40 || exchange.Connections != 42 || exchange.Errors+exchange.Duplicated+exchange.OutOfOrder != 0 {
			t.Errorf("%+v", exchange)
		}
		if (exchange.TLSNanoseconds > 0) != (tls != "None") || exchange.LoadBytes < exchange.SetupBytes*40/42 {
			t.Errorf("%+v", exchange)
		}
		setup = append(setup, exchange.SetupBytes/exchange.Connections)
	}
	if setup[1]-setup[0] < 1000 { // a certificate
		t.Errorf("%d bytes to set up a connection without TLS, %d with it", setup[0], setup[1])
	}
}

func TestOnlyMQTTConnectsForEachMessage(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	for _, other := range []string{"engine=example", "url=kafka://127.0.0.1:1"} {
		_, _, seal := sealed(t, instead(broker.arguments("None", append(eachMessage, "inFlight=1")...), other)...)
		if seal.Failure == nil || seal.Failure.Reason != "InvalidArguments" || !bytes.Contains([]byte(seal.Failure.Message), []byte("only MQTT has")) {
			t.Errorf("%s: %+v", other, seal.Failure)
		}
	}
}
