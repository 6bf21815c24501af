package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// group is the publishers and subscribers of a topic, and the deliveries of each message.
type group struct {
	publishers, subscribers, deliveries int64
	subscription                        string
}

var (
	fanIn  = group{8, 1, 1, "Each"}
	fanOut = group{1, 8, 8, "Each"}
	spread = group{4, 2, 1, "Shared"}
	groups = []group{fanIn, fanOut, {3, 4, 4, "Each"}, spread}
)

func (g group) String() string {
	return fmt.Sprintf("%d-%d %s", g.publishers, g.subscribers, g.subscription)
}

func (g group) fields() []string {
	return []string{
		fmt.Sprintf("group.publishers=%d", g.publishers), fmt.Sprintf("group.subscribers=%d", g.subscribers), "group.subscription=" + g.subscription,
	}
}

// countsAll asserts that two such groups lose nothing, and count each delivery once.
func (g group) countsAll(t *testing.T, arguments ...string) {
	t.Helper()
	for number, trial := range measured(t, append(append(arguments, g.fields()...), "pairs=2", "messages=30", "trials=1-2")...) {
		exchange, sent := trial.Exchange, 2*30*g.publishers
		if exchange.Sent != sent || exchange.Received != sent*g.deliveries || exchange.Lost+exchange.Duplicated+exchange.Errors != 0 {
			t.Errorf("trial %d: %+v, %+v", number, exchange, exchange.Arrivals)
		}
		if exchange.ReceivedBytes != 1024*exchange.Received || exchange.SentBytes != 1024*sent || exchange.Connections != 2*(g.publishers+g.subscribers) {
			t.Errorf("trial %d: %+v, %+v", number, exchange, exchange.Arrivals)
		}
		if left := trial.Distributions.RoundTrip.Count; left+exchange.Discarded != exchange.Received {
			t.Errorf("%d round trips and %d discarded of %d", left, exchange.Discarded, exchange.Received)
		}
		if len(trial.PairShares.Received) != 2 || trial.PairShares.Received[0] != exchange.Received/2 {
			t.Errorf("%+v", trial.PairShares)
		}
		if !slices.Contains(arguments, "delivery=AtMostOnce") && exchange.Acknowledged != sent {
			t.Errorf("%d acknowledged", exchange.Acknowledged)
		}
	}
}

// TestGroupsCountEveryDelivery runs each group with each delivery.
func TestGroupsCountEveryDelivery(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	for index, delivery := range []string{"AtMostOnce", "AtLeastOnce", "ExactlyOnce"} {
		for number, group := range groups {
			t.Run(delivery+" "+group.String(), func(t *testing.T) {
				pace := []string{"inFlight=2", "asFastAsPossible", "messagesPerSecond=200"}[(index+number)%3]
				kept := []string{"connections=Kept", "connections=EachTrial"}[number%2]
				for _, version := range []string{"3.1.1", "5"} {
					group.countsAll(t, broker.arguments("None", "delivery="+delivery, pace, kept, "compression=Zstd", "mqtt.version="+version)...)
				}
			})
		}
	}
}

func kafkaGroups(t *testing.T, broker *kafkaBroker) {
	for delivery, group := range map[string]group{"AtMostOnce": fanIn, "AtLeastOnce": fanOut, "ExactlyOnce": {2, 3, 3, "Each"}} {
		t.Run(delivery+" "+group.String(), func(t *testing.T) {
			group.countsAll(t, broker.arguments("None", "delivery="+delivery, "asFastAsPossible", "kafka.partitions=2")...)
		})
	}
}

// TestClosedLoopWaitsForAllSubscribers has a window of one message: it is sent when all subscribers have the previous
// one.
func TestClosedLoopWaitsForAllSubscribers(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	exchange := measured(t, append(broker.arguments("None", "messages=200", "inFlight=1"), fanOut.fields()...)...)[0].Exchange
	if exchange.Received != 1600 || exchange.OutOfOrder != 0 || exchange.Lost != 0 {
		t.Errorf("%+v, %+v", exchange, exchange.Arrivals)
	}
}

// TestStrikeGroupsCountLossesOfAKilledBroker compares received and lost deliveries with those that are due.
func TestStrikeGroupsCountLossesOfAKilledBroker(t *testing.T) {
	t.Parallel()
	for _, group := range []group{fanIn, fanOut, spread} {
		t.Run(group.String(), func(t *testing.T) {
			t.Parallel()
			broker := startMosquitto(t, later)
			of := broker.load(2_000, append(group.fields(), "delivery=AtLeastOnce", "asFastAsPossible", "deliveryTimeoutMilliseconds=15000")...)
			outcome := broker.struck(t, of, func() {
				broker.kill(t)
				broker.start(t)
			})
			exchange := outcome.only(t).Exchange
			if due := exchange.Sent * group.deliveries; exchange.Received+exchange.Lost != due || exchange.Lost > due/2 {
				t.Errorf("%d of %d that are due: %+v", exchange.Received+exchange.Lost, due, exchange.Arrivals)
			}
			if exchange.Reconnects != group.publishers+group.subscribers || exchange.AcknowledgedLost > exchange.Lost {
				t.Errorf("%+v, %+v", exchange, exchange.Arrivals)
			}
		})
	}
}

// TestStrikeGroupsLoseNothingByARestart restarts a broker that keeps its sessions. Shared subscriptions are left out,
// because Mosquitto 2.0.11 loses some of their messages.
func TestStrikeGroupsLoseNothingByARestart(t *testing.T) {
	t.Parallel()
	for _, group := range []group{fanIn, fanOut} {
		t.Run(group.String(), func(t *testing.T) {
			t.Parallel()
			broker := startMosquitto(t, later, "persistence true")
			of := broker.load(2_000, append(group.fields(), "delivery=AtLeastOnce", "asFastAsPossible", patient)...)
			outcome := broker.struck(t, of, func() { broker.restart(t) })
			exchange := outcome.only(t).Exchange
			if exchange.Lost != 0 || exchange.Received != exchange.Sent*group.deliveries || exchange.Reconnects < group.publishers+group.subscribers {
				t.Errorf("%+v, %+v", exchange, exchange.Arrivals)
			}
		})
	}
}

func TestWrongGroupsAreReportedWithAHint(t *testing.T) {
	t.Parallel()
	for words, says := range map[string]string{
		"group.publishers=2 role=Alone delivery=AtLeastOnce unacknowledged=1": "write role Both",
		"group.subscribers=2 engine=paho":                                     "no engine",
		"group.publishers=2 sizeBytes=7":                                      "messages of several publishers need 8",
		"group.publishers=64 group.subscribers=64 pairs=9":                    "1152 connections, and 1024",
		"group.subscription=Shared url=kafka://127.0.0.1:1":                   "only for mqtt",
	} {
		url := "url=mqtt://127.0.0.1:1"
		if strings.Contains(words, "url=") {
			url = ""
		}
		given := append([]string{"Broker", "messages=1", "inFlight=1"}, strings.Fields(words+" "+url)...)
		_, _, seal := sealed(t, given...)
		if seal.Failure == nil || seal.Failure.Reason != "InvalidArguments" || !strings.Contains(seal.Failure.Message, says) {
			t.Errorf("%s: %+v", words, seal.Failure)
		}
	}
}
