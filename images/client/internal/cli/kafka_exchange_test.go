package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/contracttest"
)

func TestKafka(t *testing.T) {
	t.Parallel()
	broker := startKafka(t)
	t.Run("every delivery counts every message", func(t *testing.T) { kafkaCounts(t, broker) })
	t.Run("alone", func(t *testing.T) { kafkaAlone(t, broker) })
	t.Run("connections are kept", func(t *testing.T) { keepsConnections(t, broker.arguments) })
	t.Run("known by its own address", func(t *testing.T) { kafkaOpen(t, broker) })
	t.Run("sizes from two bytes on", func(t *testing.T) { kafkaSizes(t, broker) })
	t.Run("batches", func(t *testing.T) { kafkaBatches(t, broker) })
	t.Run("codecs", func(t *testing.T) { kafkaCodecs(t, broker) })
	t.Run("refusals", func(t *testing.T) { kafkaRefusals(t, broker) })
	t.Run("no topic is left", func(t *testing.T) { kafkaLeaves(t, broker) })
	t.Run("killed", func(t *testing.T) { kafkaKilled(t, broker) })
	t.Run("fenced", func(t *testing.T) { kafkaFenced(t, broker) })
	t.Run("away", func(t *testing.T) { kafkaAway(t, broker) })
	t.Run("terminated", func(t *testing.T) { kafkaTerminated(t, broker) })
}

func kafkaCounts(t *testing.T, broker *kafkaBroker) {
	for _, levels := range [][2]string{
		{"AtMostOnce", "None"}, {"AtLeastOnce", "None"}, {"ExactlyOnce", "None"}, {"AtLeastOnce", "TLSv1.2"}, {"ExactlyOnce", "TLSv1.3"},
	} {
		delivery, tls := levels[0], levels[1]
		t.Run(delivery+" "+tls, func(t *testing.T) {
			arguments := broker.arguments(tls, "--delivery="+delivery, "--messages=30", "--pairs=3", "--in-flight=2", "--partitions=2",
				"--content=SensorJSON", "--compression=Zstd", "--encryption=AES128GCM", "--trials=2-3", "--warmup=1")
			trials := measured(t, arguments...)
			if len(trials) != 3 || !trials[0].Warmup || trials[2].Trial != 3 {
				t.Errorf("%d trials", len(trials))
			}
			exchange := trials[1].Exchange
			if exchange.Received != 90 || exchange.ReceivedBytes != 90*1024 || exchange.Duplicated+exchange.Errors+exchange.Reconnects != 0 {
				t.Errorf("%+v", exchange)
			}
			if delivery != "ExactlyOnce" && exchange.Retried != 0 { // a slow broker may ask to wait for the transaction before
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

// kafkaOpen is as a cluster of somebody else's: without an account, and where it says that it is.
func kafkaOpen(t *testing.T, broker *kafkaBroker) {
	url := fmt.Sprintf("--url=kafka://127.0.0.1:%d", broker.openPort)
	if trial := measured(t, "broker", url, "--messages=20", "--in-flight=1", "--warm-rounds=0")[0]; trial.Exchange.Received != 20 {
		t.Errorf("%+v", trial.Exchange)
	}
}

func kafkaSizes(t *testing.T, broker *kafkaBroker) {
	for _, size := range []int{2, 7, 8, 2 << 20} {
		trial := measured(t, broker.arguments("None", fmt.Sprintf("--size=%d", size), "--messages=40", "--as-fast-as-possible", "--window=8")...)[0]
		if want := int64(40 * size); trial.Exchange.Received != 40 || trial.Exchange.ReceivedBytes != want {
			t.Errorf("%d bytes: %+v", size, trial.Exchange)
		}
	}
}

// kafkaBatches are fewer the longer they wait, and no larger than is said.
func kafkaBatches(t *testing.T, broker *kafkaBroker) {
	batches := func(more ...string) *contract.Exchange {
		load := []string{"--delivery=AtLeastOnce", "--messages=200", "--messages-per-second=1000", "--size=1000"}
		return measured(t, broker.arguments("None", append(load, more...)...)...)[0].Exchange
	}
	lingering, small := batches("--linger-milliseconds=100"), batches("--linger-milliseconds=100", "--batch-bytes=5000")
	if lingering.Batches > 20 {
		t.Errorf("%d batches in 200 ms with a linger of 100 ms", lingering.Batches)
	}
	if small.Batches < 200/5 || small.BatchBytes/small.Batches > 5000 {
		t.Errorf("%d batches of %d bytes", small.Batches, small.BatchBytes)
	}
}

// kafkaCodecs make batches small, and leave payloads as they are.
func kafkaCodecs(t *testing.T, broker *kafkaBroker) {
	for _, codec := range []string{"Gzip", "Snappy", "Lz4", "Zstd"} {
		exchange := measured(t, broker.arguments("None", "--content=Zeros", "--codec="+codec, "--messages=50", "--as-fast-as-possible")...)[0].Exchange
		if exchange.BatchBytes > exchange.SentBytes/2 || exchange.EncodedBytes != exchange.SentBytes || exchange.CompressNanoseconds != 0 {
			t.Errorf("%s: %+v", codec, exchange)
		}
	}
}

func kafkaRefusals(t *testing.T, broker *kafkaBroker) {
	stranger := t.TempDir()
	writeCertificates(t, stranger, later)
	for name, test := range map[string]struct {
		reason    string
		arguments []string
	}{
		"password":    {"CredentialsRefused", instead(broker.arguments("None"), "--password-file="+broker.folder+"/wrong")},
		"CA":          {"CertificateUnknown", instead(broker.arguments("TLSv1.3"), "--ca-file="+stranger+"/tls.crt")},
		"name":        {"CertificateUnknown", broker.arguments("TLSv1.2", "--server-name=another")},
		"no TLS":      {"TlsVersionRefused", instead(broker.arguments("TLSv1.3"), fmt.Sprintf("--url=kafkas://127.0.0.1:%d", broker.port))},
		"unreachable": {"BrokerUnreachable", instead(broker.arguments("None", "--ready-milliseconds=300"), "--url=kafka://127.0.0.1:1")},
		"size":        {"PayloadNotDelivered", broker.arguments("None", "--size=4000000", "--patience-milliseconds=300")},
		"codec":       {"InvalidArguments", broker.arguments("None", "--codec=Brotli")},
		"partitions":  {"InvalidArguments", broker.arguments("None", "--partitions=0")},
	} {
		t.Run(name, func(t *testing.T) {
			code, trials, seal := sealed(t, append(test.arguments, "--messages=10", "--in-flight=1", "--delivery=AtLeastOnce")...)
			if code == 0 || len(trials) != 0 || seal.Failure == nil || seal.Failure.Reason != test.reason {
				t.Errorf("exit code %d, %+v", code, seal.Failure)
			}
		})
	}
}

// kafkaLeaves no topic but the broker's own.
func kafkaLeaves(t *testing.T, broker *kafkaBroker) {
	eventually(t, "no topic is left", func() bool {
		left, err := filepath.Glob(broker.folder + "/data/tierbench.*[0-9]")
		return err == nil && len(left) == 0
	})
}

// loadingKafka starts a load that is at the broker when it returns; `ended` gives what it said.
func loadingKafka(t *testing.T, broker *kafkaBroker, arguments ...string) (client *exec.Cmd, ended func() (int, []contract.Trial, contract.Seal)) {
	t.Helper()
	log, topic := filepath.Join(t.TempDir(), "log"), fmt.Sprintf("load%d", time.Now().UnixNano())
	var out bytes.Buffer
	client = process(t, &out, broker.arguments("None", append(arguments, "--topic="+topic, "--output=json", "--termination-log="+log)...)...)
	eventually(t, "the load has begun", func() bool {
		log, err := os.Stat(broker.folder + "/data/" + topic + ".t1.0-0/00000000000000000000.log")
		return err == nil && log.Size() > 100_000
	})
	return client, func() (int, []contract.Trial, contract.Seal) {
		code := exitCode(t, client)
		trials, seal := contracttest.Check(t, out.Bytes(), read(t, log))
		return code, trials, seal
	}
}

// kafkaKilled keeps its volume: nothing that it acknowledged is lost. Under ExactlyOnce it may be struck between a commit and the
// marker that lets it be read: what waits is read after the next commit, which a closed loop does not make if it waits for just
// that. The load outlasts the broker's new start by far.
func kafkaKilled(t *testing.T, broker *kafkaBroker) {
	for _, load := range [][2]string{
		{"AtMostOnce", "--as-fast-as-possible"}, {"AtLeastOnce", "--as-fast-as-possible"}, {"ExactlyOnce", "--messages-per-second=1000"},
	} {
		delivery, pace := load[0], load[1]
		t.Run(delivery, func(t *testing.T) {
			_, ended := loadingKafka(t, broker, "--delivery="+delivery, pace, "--duration-seconds=20", "--window=1000", "--patience-milliseconds=30000")
			broker.kill(t)
			broker.start(t)
			code, trials, _ := ended()
			exchange := trials[0].Exchange
			if code != 0 || trials[0].Outcome != contract.Completed || exchange.Reconnects < 2 || exchange.ErrorCauses[contract.Disconnected] < 2 {
				t.Errorf("exit code %d, %+v, %+v", code, trials[0].Failure, exchange)
			}
			if exchange.Sent != exchange.Received+exchange.Lost || exchange.AcknowledgedLost != 0 {
				t.Errorf("%+v", exchange)
			}
			if delivery != "AtMostOnce" && exchange.Lost != 0 || delivery == "AtLeastOnce" && exchange.Retried == 0 {
				t.Errorf("%+v", exchange)
			}
		})
	}
}

// kafkaFenced takes the producer's name away in mid-load, as the end of its own transaction does when Kafka dies within it.
func kafkaFenced(t *testing.T, broker *kafkaBroker) {
	_, ended := loadingKafka(t, broker, "--delivery=ExactlyOnce", "--as-fast-as-possible", "--duration-seconds=3", "--window=1000")
	logs, err := filepath.Glob(broker.folder + "/data/load*.t1.0-0")
	if err != nil || len(logs) == 0 {
		t.Fatalf("no topic: %v", err)
	}
	topic := strings.TrimSuffix(filepath.Base(slices.Max(logs)), ".t1.0-0")
	other, err := kgo.NewClient(kgo.SeedBrokers(fmt.Sprintf("127.0.0.1:%d", broker.openPort)), kgo.TransactionalID(topic+"-t1-0-p"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, _, err := other.ProducerID(t.Context()); err != nil {
		t.Fatal(err)
	}
	code, trials, _ := ended()
	exchange := trials[0].Exchange
	if code != 0 || trials[0].Outcome != contract.Completed || exchange.Lost != 0 || exchange.Received != exchange.Sent {
		t.Errorf("exit code %d, %+v, %+v", code, trials[0].Failure, exchange)
	}
}

func kafkaAway(t *testing.T, broker *kafkaBroker) {
	for name, fault := range kafkaFaults {
		t.Run(name, func(t *testing.T) {
			_, ended := loadingKafka(t, broker, "--delivery=AtLeastOnce", "--as-fast-as-possible", "--messages=10000000", "--patience-milliseconds=500")
			fault.harm(t, broker)
			away := time.Now()
			code, trials, _ := ended()
			if took := time.Since(away); code != 0 || len(trials) != 1 || trials[0].Outcome != contract.Failed || trials[0].Failure.Reason != "BrokerUnreachable" || took > soon {
				t.Errorf("exit code %d, %+v after %v", code, trials, took)
			}
			fault.mend(t, broker)
		})
	}
}

func kafkaTerminated(t *testing.T, broker *kafkaBroker) {
	for name, fault := range kafkaFaults {
		t.Run(name, func(t *testing.T) {
			client, ended := loadingKafka(t, broker, "--delivery=ExactlyOnce", "--as-fast-as-possible", "--duration-seconds=600")
			fault.harm(t, broker)
			tell(t, client, syscall.SIGTERM)
			told := time.Now()
			code, _, seal := ended()
			if took := time.Since(told); code != exitInterrupted || seal.Failure == nil || seal.Failure.Reason != "Interrupted" || took > soon {
				t.Errorf("exit code %d, %+v, after %v", code, seal.Failure, took)
			}
			fault.mend(t, broker)
		})
	}
}

var kafkaFaults = map[string]struct {
	harm, mend func(*testing.T, *kafkaBroker)
}{
	"gone": {
		func(t *testing.T, broker *kafkaBroker) { broker.kill(t) },
		func(t *testing.T, broker *kafkaBroker) { broker.start(t) },
	},
	"frozen": {
		func(t *testing.T, broker *kafkaBroker) { tell(t, broker.process, syscall.SIGSTOP) },
		func(t *testing.T, broker *kafkaBroker) { tell(t, broker.process, syscall.SIGCONT) },
	},
}
