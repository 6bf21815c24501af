package cli

import (
	"fmt"
	"strings"
	"testing"

	"tierbench.io/client/internal/contract"
)

// alonePaces are the paces of publishers without subscribers, by delivery.
var alonePaces = map[string]string{"AtMostOnce": "asFastAsPossible", "AtLeastOnce": "unacknowledged=1", "ExactlyOnce": "unacknowledged=4"}

// publishesAlone asserts that publishers without subscribers count acknowledgements, and no arrivals.
func publishesAlone(t *testing.T, arguments func(tls string, more ...string) []string, deliveries ...string) {
	for _, delivery := range deliveries {
		pace := alonePaces[delivery]
		t.Run(delivery, func(t *testing.T) {
			load := []string{"role=Alone", "delivery=" + delivery, pace, "messages=300", "pairs=2", "encryption=AES128GCM", "trials=1-2", "kafka.partitions=2"}
			for _, trial := range measured(t, arguments("None", load...)...) {
				exchange, times := trial.Exchange, trial.Distributions
				if exchange.Arrivals != nil || times.RoundTrip != nil || exchange.Acknowledged != 600 || exchange.AcknowledgedBytes != 600*1024 {
					t.Errorf("%+v", exchange)
				}
				if answered := delivery != "AtMostOnce"; (times.Acknowledge != nil) != answered || answered && times.Acknowledge.Count+exchange.Discarded != 600 {
					t.Errorf("%+v", times.Acknowledge)
				}
				if exchange.Errors != 0 || exchange.EncryptNanoseconds == 0 || trial.DurationNanoseconds == 0 || exchange.WireSentBytes < 600*1024 {
					t.Errorf("%+v", exchange)
				}
			}
		})
	}
}

func TestPublishersWithoutSubscribersCountAcknowledgements(t *testing.T) {
	t.Parallel()
	publishesAlone(t, startMosquitto(t, later).arguments, "AtMostOnce", "AtLeastOnce", "ExactlyOnce")
}

func TestAcknowledgedPacingLosesNothing(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	for _, delivery := range []string{"AtLeastOnce", "ExactlyOnce"} {
		exchange := measured(t, broker.arguments("None", "delivery="+delivery, "unacknowledged=2", "messages=300", "pairs=2")...)[0].Exchange
		if exchange.Received != 600 || exchange.Acknowledged != 600 || exchange.Errors != 0 {
			t.Errorf("%s: %+v", delivery, exchange)
		}
	}
}

func TestStrikeUnconfirmedMessagesFailTheTrial(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	outcome := broker.struck(t, broker.load(400_000, "role=Alone", "delivery=AtMostOnce", "asFastAsPossible", "sizeBytes=100", patient), func() { broker.restart(t) })
	if trial := outcome.only(t); trial.Outcome != contract.Failed || trial.Failure.Reason != "Unconfirmed" || trial.Exchange.Acknowledged != 0 {
		t.Errorf("%+v, %+v", trial.Failure, trial.Exchange)
	}
}

// kafkaAlone publishes with acknowledgements and without. Without them, Kafka is asked how many messages it has.
func kafkaAlone(t *testing.T, broker *kafkaBroker) {
	publishesAlone(t, broker.arguments, "AtLeastOnce")
	exchange := measured(t, broker.arguments("None", "role=Alone", "asFastAsPossible", "messages=1000", "maxInFlight=64", "sizeBytes=20000")...)[0].Exchange
	if exchange.Acknowledged != 1000 || exchange.Sent != 1000 {
		t.Errorf("%+v", exchange)
	}
}

func TestImpossiblePaceIsRefused(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	for says, wrong := range map[string][]string{
		"write Acknowledged":     {"role=Alone", "inFlight=1"},
		"write AsFastAsPossible": {"unacknowledged=1", "delivery=AtMostOnce"},
	} {
		_, _, seal := sealed(t, broker.arguments("None", append(wrong, "messages=1")...)...)
		if seal.Failure == nil || seal.Failure.Reason != "InvalidArguments" || !strings.Contains(seal.Failure.Message, says) {
			t.Errorf("%v: %s", wrong, fmt.Sprint(seal.Failure))
		}
	}
}
