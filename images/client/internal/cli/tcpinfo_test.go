package cli

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"tierbench.io/client/internal/contract"
)

// Headers of a segment on loopback: Ethernet, IPv4, and TCP with timestamps.
const segmentHeaders = 14 + 20 + 20 + 12

// A record of TLS 1.2 by AES-GCM: 5 bytes of header, 8 of nonce, 16 of tag; of TLS 1.3 a nonce that is not sent, and one byte of type.
var recordBytes = map[string]float64{"None": 0, "TLSv1.2": 5 + 8 + 16, "TLSv1.3": 5 + 16 + 1}

// light exchanges messages of 100 bytes with Light tuning.
func light(t *testing.T, broker *mosquitto, delivery, tls string, more ...string) *contract.Exchange {
	t.Helper()
	return measured(t, broker.arguments(tls, append(more, "tuning=Light", "delivery="+delivery, "topic=wire/"+delivery+"/"+tls, "sizeBytes=100")...)...)[0].Exchange
}

// controls are the MQTT control packets of a message on both legs, by delivery.
var controls = map[string]float64{"AtMostOnce": 2, "AtLeastOnce": 4, "ExactlyOnce": 8}

func TestTLSAddsARecordToEachControlPacket(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	const messages = 200
	for delivery, controls := range controls {
		t.Run(delivery, func(t *testing.T) {
			t.Parallel()
			var plain float64
			for _, tls := range []string{"None", "TLSv1.2", "TLSv1.3"} {
				exchange := light(t, broker, delivery, tls, "inFlight=1", fmt.Sprintf("messages=%d", messages))
				data := float64(exchange.LoadBytes-segmentHeaders*exchange.LoadPackets) / messages
				if tls == "None" {
					plain = data
				} // the answer to the last message may come too late to count, and a busy machine may resend one
				if records, wanted := data-plain, controls*recordBytes[tls]; math.Abs(records-wanted) > 12 {
					t.Errorf("%s: %v bytes per message more than without, not %v", tls, records, wanted)
				}
			}
		})
	}
}

func TestSetupIsCountedSeparatelyFromTheLoad(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	load := []string{"inFlight=1", "messages=20"}
	plain, secured := light(t, broker, "AtMostOnce", "None", load...), light(t, broker, "AtMostOnce", "TLSv1.2", load...)
	if plain.Connections != 2 || secured.SetupBytes-plain.SetupBytes < 2*1000 { // a certificate each
		t.Errorf("%+v, %+v", plain, secured)
	}
	for _, exchange := range []*contract.Exchange{plain, secured} {
		packets, bytes := exchange.WireSentPackets+exchange.WireReceivedPackets, exchange.WireSentBytes+exchange.WireReceivedBytes
		if packets < exchange.SetupPackets+exchange.LoadPackets || bytes < exchange.SetupBytes+exchange.LoadBytes || bytes < segmentHeaders*packets {
			t.Errorf("%+v", exchange)
		}
	}
}

// TestMeasuresPacketsOfAMessage sends messages one by one, with time for every acknowledgement in between.
func TestMeasuresPacketsOfAMessage(t *testing.T) {
	broker := startMosquitto(t, later)
	// Segments: an acknowledgement of TCP may be part of the segment of the next control packet, or not.
	for delivery, bounds := range map[string][2]float64{"AtMostOnce": {4, 4}, "AtLeastOnce": {6, 8}, "ExactlyOnce": {10, 16}} {
		for _, tls := range []string{"None", "TLSv1.3"} {
			t.Run(delivery+" "+tls, func(t *testing.T) {
				t.Parallel()
				packets := float64(light(t, broker, delivery, tls, slow...).LoadPackets) / 20
				if packets < bounds[0]-1 || packets > bounds[1]+1 {
					t.Errorf("%v packets per message", packets)
				}
			})
		}
	}
}

var slow = []string{"messages=20", "intervalMilliseconds=100"}

func TestMeasuresPacketsOfSetup(t *testing.T) {
	broker := startMosquitto(t, later)
	plain, secured := light(t, broker, "AtMostOnce", "None", slow...), light(t, broker, "AtMostOnce", "TLSv1.2", slow...)
	// SYN, SYN-ACK and ACK; CONNECT and CONNACK; SUBSCRIBE and SUBACK of the subscriber; acknowledgements.
	if plain.SetupPackets < 12 || plain.SetupPackets > 18 {
		t.Errorf("%+v", plain)
	}
	if more := secured.SetupPackets - plain.SetupPackets; more < 2*4 { // two flights each way
		t.Errorf("%d packets more: %+v", more, secured)
	}
	for _, exchange := range []*contract.Exchange{plain, secured} {
		packets := exchange.WireSentPackets + exchange.WireReceivedPackets
		if after := packets - exchange.SetupPackets - exchange.LoadPackets; after > 12 {
			t.Errorf("%d packets after the load: %+v", after, exchange)
		}
	}
}

func TestEachPairHasItsOwnShare(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	trial := measured(t, broker.arguments("None", "pairs=3", "messages=50", "inFlight=1")...)[0]
	shares := trial.PairShares
	if !slices.Equal(shares.Received, []int64{50, 50, 50}) || slices.Max(shares.Nanoseconds) != trial.DurationNanoseconds || slices.Min(shares.Nanoseconds) <= 0 {
		t.Errorf("%+v of %d ns", shares, trial.DurationNanoseconds)
	}
}
