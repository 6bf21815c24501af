package cli

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tierbench.io/client/internal/contract"
)

// load returns a load with a number of messages and its own topic.
func (k *kafkaBroker) load(messages int, more ...string) load {
	var topic string
	return load{
		func(times int) []string {
			topic = fmt.Sprintf("load%d", time.Now().UnixNano())
			k.topic = topic
			return k.arguments("None", append(more, limit, fmt.Sprintf("messages=%d", messages*times), "topic="+topic)...)
		},
		func() bool {
			log, err := os.Stat(k.folder + "/data/" + topic + ".t1.0-0/00000000000000000000.log")
			return err == nil && log.Size() > loadBytes
		},
	}
}

func TestStrikeKafka(t *testing.T) {
	t.Parallel()
	broker := startKafka(t)
	t.Run("fenced", func(t *testing.T) { kafkaFenced(t, broker) })
	t.Run("killed", func(t *testing.T) { kafkaKilled(t, broker) })
	t.Run("frozen", func(t *testing.T) {
		kafkaUnreachable(t, broker, func() { sendSignal(t, broker.process, syscall.SIGSTOP) })
		sendSignal(t, broker.process, syscall.SIGCONT)
	})
	t.Run("gone", func(t *testing.T) { kafkaUnreachable(t, broker, func() { broker.kill(t) }) })
}

// kafkaFenced starts another producer with the same transactional ID during the load. The end of a transaction in which
// Kafka dies fences the producer, too.
func kafkaFenced(t *testing.T, broker *kafkaBroker) {
	of := broker.load(10_000, "delivery=ExactlyOnce", "asFastAsPossible", "maxInFlight=1000", patient)
	fence := func([]*client) {
		other, err := kgo.NewClient(kgo.SeedBrokers(fmt.Sprintf("127.0.0.1:%d", broker.openPort)), kgo.TransactionalID(broker.topic+"-t1-0-p"))
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if _, _, err := other.ProducerID(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	one := strike{loads: []load{of}, trial: 1, freeze: clientItself, fault: fence}
	trial := one.run(t)[0].only(t)
	if trial.Outcome != contract.Completed || trial.Exchange.Lost != 0 || trial.Exchange.Retried == 0 {
		t.Errorf("%+v, %+v", trial.Failure, trial.Exchange)
	}
}

// kafkaKilled restarts Kafka with its volume, so that no acknowledged message is lost. With ExactlyOnce, Kafka may die
// between a commit and the marker that makes its messages readable. They become readable after the next commit, for
// which a closed loop could wait forever.
func kafkaKilled(t *testing.T, broker *kafkaBroker) {
	deliveries := []string{"AtMostOnce", "AtLeastOnce", "ExactlyOnce"}
	timeouts := []string{"deliveryTimeoutMilliseconds=60000", patient, patient} // AtMostOnce waits this long for lost messages
	one := strike{
		trial: 1, freeze: func([]*client) *os.Process { return broker.process.Process },
		shows: func() bool { return unread(t, broker.port) > ackBytes },
		fault: func([]*client) {
			broker.kill(t)
			broker.start(t)
		},
	}
	for index, delivery := range deliveries {
		one.loads = append(one.loads, broker.load(5000, "delivery="+delivery, "messagesPerSecond=1000", "maxInFlight=1000", timeouts[index]))
	}
	for index, outcome := range one.run(t) {
		trial, delivery := outcome.only(t), deliveries[index]
		exchange := trial.Exchange
		if trial.Outcome != contract.Completed || exchange.Reconnects < 2 || exchange.ErrorCauses[contract.Disconnected] < 2 {
			t.Errorf("%s: %+v, %+v", delivery, trial.Failure, exchange)
		}
		if exchange.Sent != exchange.Received+exchange.Lost || exchange.AcknowledgedLost != 0 {
			t.Errorf("%s: %+v", delivery, exchange)
		}
		if delivery != "AtMostOnce" && exchange.Lost != 0 || delivery == "AtLeastOnce" && exchange.Retried == 0 {
			t.Errorf("%s: %+v", delivery, exchange)
		}
	}
}

// kafkaUnreachable fails the trial of one client, and does not keep another one from ending.
func kafkaUnreachable(t *testing.T, broker *kafkaBroker, fault func()) {
	var since time.Time
	one := strike{
		loads: []load{
			broker.load(endless, "delivery=AtLeastOnce", "asFastAsPossible", "deliveryTimeoutMilliseconds=2000"),
			broker.load(endless, "delivery=ExactlyOnce", "asFastAsPossible", patient),
		},
		trial: 1, freeze: clientItself,
		fault: func(clients []*client) {
			fault()
			sendSignal(t, clients[1].Cmd, syscall.SIGTERM)
			since = time.Now()
		},
	}
	all := one.run(t)
	took := time.Since(since)
	fails, ends := all[0], all[1]
	if trial := fails.only(t); trial.Outcome != contract.Failed || trial.Failure.Reason != "BrokerUnreachable" || took > soon {
		t.Errorf("%+v after %v", trial.Failure, took)
	}
	if ends.code != exitInterrupted || ends.seal.Failure == nil || ends.seal.Failure.Reason != "Interrupted" {
		t.Errorf("exit code %d, %+v", ends.code, ends.seal.Failure)
	}
}
