package cli

import (
	"math"
	"slices"
	"testing"

	"tierbench.io/client/internal/contract"
)

// What a segment has beside its data on loopback: Ethernet, IPv4, and TCP with timestamps.
const segmentHeaders = 14 + 20 + 20 + 12

// A record of TLS 1.2 by AES-GCM: 5 bytes of header, 8 of nonce, 16 of tag; of TLS 1.3 a nonce that is not sent, and one byte of type.
var recordBytes = map[string]float64{"None": 0, "TLSv1.2": 5 + 8 + 16, "TLSv1.3": 5 + 16 + 1}

// slow exchanges 20 messages one by one, with time for every acknowledgement in between.
func slow(t *testing.T, broker *mosquitto, delivery, tls string) *contract.Exchange {
	t.Helper()
	arguments := broker.arguments(tls, "--tuning=Light", "--delivery="+delivery, "--topic=wire/"+delivery, "--messages=20", "--size=100", "--interval-milliseconds=100")
	return measured(t, arguments...)[0].Exchange
}

func TestPacketsAndBytesOfAMessage(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	for _, test := range []struct {
		delivery    string
		controls    float64 // MQTT control packets of a message, both legs
		least, most float64 // segments: an acknowledgement of TCP may ride on the next control packet, or go alone, and a busy machine spoils some
	}{{"AtMostOnce", 2, 4, 4}, {"AtLeastOnce", 4, 6, 8}, {"ExactlyOnce", 8, 10, 16}} {
		t.Run(test.delivery, func(t *testing.T) {
			t.Parallel()
			var plain float64
			for _, tls := range []string{"None", "TLSv1.2", "TLSv1.3"} {
				exchange := slow(t, broker, test.delivery, tls)
				packets := float64(exchange.LoadPackets) / 20
				if packets < test.least-1 || packets > test.most+1 {
					t.Errorf("%s: %v packets a message", tls, packets)
				}
				data := float64(exchange.LoadBytes-segmentHeaders*exchange.LoadPackets) / 20
				if tls == "None" {
					plain = data
				} // what answers the last message may come too late to count, and a busy machine sends one again
				if records, wanted := data-plain, test.controls*recordBytes[tls]; math.Abs(records-wanted) > 12 {
					t.Errorf("%s: %v bytes a message more than without, not %v", tls, records, wanted)
				}
			}
		})
	}
}

func TestWhatConnectingTakesIsApart(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	plain, secured := slow(t, broker, "AtMostOnce", "None"), slow(t, broker, "AtMostOnce", "TLSv1.2")
	// SYN, its answer, the answer's; CONNECT and CONNACK; SUBSCRIBE and SUBACK of the subscriber; acknowledgements.
	if plain.Connections != 2 || plain.SetupPackets < 12 || plain.SetupPackets > 18 {
		t.Errorf("%+v", plain)
	}
	// Two flights each way, and a certificate in one of them.
	if more := secured.SetupPackets - plain.SetupPackets; more < 2*4 || secured.SetupBytes-plain.SetupBytes < 2*1000 {
		t.Errorf("%d packets more: %+v", more, secured)
	}
	for _, exchange := range []*contract.Exchange{plain, secured} {
		packets, bytes := exchange.WireSentPackets+exchange.WireReceivedPackets, exchange.WireSentBytes+exchange.WireReceivedBytes
		after, least := packets-exchange.SetupPackets-exchange.LoadPackets, segmentHeaders*packets
		if after < 0 || after > 12 || bytes < exchange.SetupBytes+exchange.LoadBytes || bytes < least {
			t.Errorf("%d packets after the load: %+v", after, exchange)
		}
	}
}

func TestEachPairsShareIsItsOwn(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	trial := measured(t, broker.arguments("None", "--pairs=3", "--messages=50", "--in-flight=1")...)[0]
	shares := trial.PairShares
	if !slices.Equal(shares.Received, []int64{50, 50, 50}) || slices.Max(shares.Nanoseconds) != trial.DurationNanoseconds || slices.Min(shares.Nanoseconds) <= 0 {
		t.Errorf("%+v of %d ns", shares, trial.DurationNanoseconds)
	}
}
