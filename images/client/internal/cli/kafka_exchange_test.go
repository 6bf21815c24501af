package cli

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	exchange "tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/kafka"
)

const createTopics = 19 // the key of this request

func TestKafka(t *testing.T) {
	t.Parallel()
	broker := startKafka(t)
	for _, one := range []struct {
		name string
		test func(*testing.T, *kafkaBroker)
	}{
		{"every delivery counts every message", kafkaCounts},
		{"groups", kafkaGroups},
		{"publishers without subscribers", kafkaAlone},
		{"connections are kept", kafkaKeepsConnections},
		{"without an account", kafkaOpen},
		{"messages of all sizes", kafkaSizes},
		{"batches", kafkaBatches},
		{"codecs", kafkaCodecs},
		{"refusals", kafkaRefusals},
		{"client certificates are required", kafkaRequiresCertificates},
		{"handshake bytes match a capture", kafkaComparesWithCapture},
		{"SINETStream", kafkaSINETStream},
		{"a broker that accepts no more connections", kafkaRefusesConnections},
		{"a subscriber that gives up", kafkaGivesUp},
		{"a topic that is created late", kafkaCreatesLate},
		{"a topic that is created late for SINETStream", kafkaSINETStreamCreatesLate},
	} {
		t.Run(one.name, func(t *testing.T) {
			one.test(t, broker)
			noTopicIsLeft(t, broker)
		})
	}
}

func kafkaKeepsConnections(t *testing.T, broker *kafkaBroker) {
	keepsConnections(t, broker.arguments, "ExactlyOnce")
}

func kafkaRequiresCertificates(t *testing.T, broker *kafkaBroker) {
	requiresCertificates(t, broker.folder, at("kafkas", broker.tlsPort), "false", func(tls string, more ...string) []string {
		return instead(broker.arguments(tls, more...), at("kafkas", broker.mutualPort))
	})
}

func kafkaComparesWithCapture(t *testing.T, broker *kafkaBroker) {
	comparesWithCapture(t, broker.folder, "kafkas", map[string]int{"": broker.tlsPort, "client.crt": broker.mutualPort}, false)
}

func kafkaCounts(t *testing.T, broker *kafkaBroker) {
	for _, levels := range [][2]string{
		{"AtMostOnce", "None"}, {"AtLeastOnce", "None"}, {"ExactlyOnce", "None"}, {"AtLeastOnce", "TLSv1.2"}, {"ExactlyOnce", "TLSv1.3"},
	} {
		delivery, tls := levels[0], levels[1]
		t.Run(delivery+" "+tls, func(t *testing.T) {
			arguments := broker.arguments(tls, "delivery="+delivery, "messages=30", "pairs=3", "inFlight=2", "kafka.partitions=2",
				"content=SensorJSON", "compression=Zstd", "encryption=AES128GCM", "trials=2-3", "warmupTrials=1")
			trials := measured(t, arguments...)
			if len(trials) != 3 || !trials[0].Warmup || trials[2].Trial != 3 {
				t.Errorf("%d trials", len(trials))
			}
			exchange := trials[1].Exchange
			if exchange.Received != 90 || exchange.ReceivedBytes != 90*1024 || exchange.Duplicated+exchange.Errors+exchange.Reconnects != 0 {
				t.Errorf("%+v", exchange)
			}
			if delivery != "ExactlyOnce" && exchange.Retried != 0 { // a slow broker may ask to wait for the previous transaction
				t.Errorf("%d retried", exchange.Retried)
			}
			if acknowledged := exchange.Acknowledged == 90; acknowledged != (delivery != "AtMostOnce") {
				t.Errorf("%d acknowledged", exchange.Acknowledged)
			}
			if acks := trials[1].Distributions.Acknowledge; acks != nil && acks.Count != 90 || (acks != nil) != (delivery != "AtMostOnce") {
				t.Errorf("%+v until acknowledged", acks)
			}
			if (exchange.TLSNanoseconds > 0) != (tls != "None") || exchange.ConnectNanoseconds == 0 {
				t.Errorf("%+v", exchange)
			}
			if least := exchange.EncodedBytes; exchange.WireSentBytes < least || exchange.WireReceivedBytes < least || exchange.Batches == 0 {
				t.Errorf("%+v", exchange)
			}
			packets := exchange.WireSentPackets + exchange.WireReceivedPackets
			if exchange.Connections != 6 || exchange.SetupPackets < 6*5 || exchange.LoadBytes < 2*exchange.EncodedBytes || packets < exchange.SetupPackets+exchange.LoadPackets {
				t.Errorf("%+v", exchange)
			}
		})
	}
}

// kafkaOpen uses Kafka like an external cluster: without an account, at its advertised address.
func kafkaOpen(t *testing.T, broker *kafkaBroker) {
	url := fmt.Sprintf("url=kafka://127.0.0.1:%d", broker.openPort)
	if trial := measured(t, "Broker", url, "messages=20", "inFlight=1", "warmRounds=0")[0]; trial.Exchange.Received != 20 {
		t.Errorf("%+v", trial.Exchange)
	}
}

func kafkaSizes(t *testing.T, broker *kafkaBroker) {
	for _, size := range []int{2, 7, 8, 2 << 20} {
		trial := measured(t, broker.arguments("None", fmt.Sprintf("sizeBytes=%d", size), "messages=40", "asFastAsPossible", "maxInFlight=8")...)[0]
		if want := int64(40 * size); trial.Exchange.Received != 40 || trial.Exchange.ReceivedBytes != want {
			t.Errorf("%d bytes: %+v", size, trial.Exchange)
		}
	}
}

// kafkaBatches asserts that longer waits make fewer batches, and that batches respect the maximum size.
func kafkaBatches(t *testing.T, broker *kafkaBroker) {
	batches := func(more ...string) contract.Trial {
		load := []string{"delivery=AtLeastOnce", "messages=200", "messagesPerSecond=1000", "sizeBytes=1000"}
		return measured(t, broker.arguments("None", append(load, more...)...)...)[0]
	}
	lingering, small := batches("kafka.lingerMilliseconds=100"), batches("kafka.lingerMilliseconds=100", "kafka.batchBytes=5000")
	if trial := lingering; trial.Exchange.Batches > trial.DurationNanoseconds/(100*time.Millisecond).Nanoseconds()+2 {
		t.Errorf("%d batches in %d ns with a linger of 100 ms", trial.Exchange.Batches, trial.DurationNanoseconds)
	}
	if exchange := small.Exchange; exchange.Batches < 200/5 || exchange.BatchBytes/exchange.Batches > 5000 {
		t.Errorf("%d batches of %d bytes", exchange.Batches, exchange.BatchBytes)
	}
}

// kafkaCodecs asserts that codecs compress batches, and leave payloads unchanged.
func kafkaCodecs(t *testing.T, broker *kafkaBroker) {
	for _, codec := range []string{"Gzip", "Snappy", "Lz4", "Zstd"} {
		exchange := measured(t, broker.arguments("None", "content=Zeros", "kafka.codec="+codec, "messages=50", "asFastAsPossible")...)[0].Exchange
		if exchange.BatchBytes > exchange.SentBytes/2 || exchange.EncodedBytes != exchange.SentBytes || exchange.CompressNanoseconds != 0 {
			t.Errorf("%s: %+v", codec, exchange)
		}
	}
}

func kafkaRefusals(t *testing.T, broker *kafkaBroker) {
	other := t.TempDir()
	writeCertificates(t, other, later)
	for name, test := range map[string]struct {
		reason    string
		arguments []string
	}{
		"password":    {"CredentialsRefused", instead(broker.arguments("None"), "passwordFile="+broker.folder+"/wrong")},
		"CA":          {"CertificateUnknown", instead(broker.arguments("TLSv1.3"), "caFile="+other+"/tls.crt")},
		"name":        {"CertificateUnknown", broker.arguments("TLSv1.2", "serverName=another")},
		"no TLS":      {"TlsVersionRefused", instead(broker.arguments("TLSv1.3"), fmt.Sprintf("url=kafkas://127.0.0.1:%d", broker.port))},
		"unreachable": {"BrokerUnreachable", instead(broker.arguments("None", "readyMilliseconds=300"), "url=kafka://127.0.0.1:1")},
		"size":        {"PayloadNotDelivered", broker.arguments("None", "sizeBytes=4000000", "deliveryTimeoutMilliseconds=300")},
		"codec":       {"InvalidArguments", broker.arguments("None", "kafka.codec=Brotli")},
		"partitions":  {"InvalidArguments", broker.arguments("None", "kafka.partitions=0")},
	} {
		t.Run(name, func(t *testing.T) {
			code, trials, seal := sealed(t, append(test.arguments, "messages=10", "inFlight=1", "delivery=AtLeastOnce")...)
			if code == 0 || len(trials) != 0 || seal.Failure == nil || seal.Failure.Reason != test.reason {
				t.Errorf("exit code %d, %+v", code, seal.Failure)
			}
		})
	}
}

// kafkaGivesUp asserts that a subscriber deletes its topic, although a slow broker did not answer while it subscribed.
func kafkaGivesUp(t *testing.T, broker *kafkaBroker) {
	driver := openDriver(broker)
	publisher, subscriber := connectKafka(t, driver), connectKafka(t, driver)
	defer publisher.Close()
	const topic = "tierbench.slow"
	if err := publisher.Prepare(t.Context(), topic, false); err != nil {
		t.Fatal(err)
	}
	stop(t, broker.process.Process)
	defer sendSignal(t, broker.process, syscall.SIGCONT)
	ctx, giveUp := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- subscriber.Subscribe(ctx, topic, func([]byte, time.Time) {}) }()
	eventually(t, "the broker has a request", func() bool { return unread(t, broker.openPort) > 0 })
	giveUp()
	if <-ended == nil {
		t.Error("a frozen broker answers")
	}
	sendSignal(t, broker.process, syscall.SIGCONT)
	subscriber.Close()
}

func kafkaCreatesLate(t *testing.T, broker *kafkaBroker) {
	createsLate(t, broker, func(address string) exchange.Driver {
		driver := openDriver(broker)
		driver.Address = address
		return driver
	})
}

// createsLate asserts that a subscriber deletes the topic that a slow broker creates after the subscriber gave up.
func createsLate(t *testing.T, broker *kafkaBroker, driver func(address string) exchange.Driver) {
	proxy, asked, answer := tapped(t, broker.openPort), make(chan struct{}), make(chan struct{})
	var once sync.Once
	proxy.mutex.Lock()
	proxy.holds = func(sent []byte) {
		if len(sent) > 6 && binary.BigEndian.Uint16(sent[4:]) == createTopics {
			once.Do(func() {
				close(asked)
				<-answer
			})
		}
	}
	proxy.mutex.Unlock()
	subscriber := connectKafka(t, driver(proxy.address))
	ctx, giveUp := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- subscriber.Subscribe(ctx, "tierbench.late", func([]byte, time.Time) {}) }()
	<-asked
	giveUp()
	if <-ended == nil {
		t.Error("subscribed to a topic that does not exist")
	}
	closed := make(chan struct{})
	go func() {
		subscriber.Close()
		close(closed)
	}()
	select {
	case <-closed: // without waiting for the topic that it asked for
	case <-time.After(time.Second):
	}
	close(answer)
	<-closed
	after := connectKafka(t, openDriver(broker)) // the broker creates its topic after the other one
	if err := after.Subscribe(t.Context(), "tierbench.after", func([]byte, time.Time) {}); err != nil {
		t.Error(err)
	}
	after.Close()
}

func openDriver(broker *kafkaBroker) *kafka.Driver {
	return &kafka.Driver{
		Address: fmt.Sprintf("127.0.0.1:%d", broker.openPort), ServerName: "127.0.0.1", Delivery: kafka.AtLeastOnce, Codec: "None",
		Partitions: 1, MessageBytes: 1 << 10, Timeout: 5 * time.Second, Buffered: 1,
	}
}

func connectKafka(t *testing.T, driver exchange.Driver) exchange.Connection {
	t.Helper()
	made, err := driver.Connect(t.Context(), "client", exchange.Events{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// noTopicIsLeft waits until only the broker's own topics exist.
func noTopicIsLeft(t *testing.T, broker *kafkaBroker) {
	t.Helper()
	var left []string
	defer func() {
		if len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	}()
	eventually(t, "no topic is left", func() bool {
		var err error
		left, err = filepath.Glob(broker.folder + "/data/tierbench.*[0-9]")
		return err == nil && len(left) == 0
	})
}
