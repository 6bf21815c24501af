package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"tierbench.io/client/internal/agent"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/contracttest"
	"tierbench.io/client/internal/kafka"
	"tierbench.io/client/internal/mqtt"
	"tierbench.io/client/internal/payload"
	"tierbench.io/client/internal/plan"
	"tierbench.io/client/internal/porttest"
)

var later = time.Now().Add(time.Hour)

// measured runs a client, asserts that all trials complete, and returns them.
func measured(t *testing.T, arguments ...string) []contract.Trial {
	t.Helper()
	code, trials, seal := sealed(t, arguments...)
	if code != 0 || seal.Failure != nil {
		t.Fatalf("exit code %d, %+v", code, seal.Failure)
	}
	for _, trial := range trials {
		if trial.Outcome != contract.Completed {
			t.Fatalf("%+v", trial.Failure)
		}
		if exchange := trial.Exchange; exchange.Sent == 0 || exchange.Arrivals != nil && (exchange.Received+exchange.Lost)%exchange.Sent != 0 {
			t.Errorf("%+v", exchange)
		}
	}
	return trials
}

// TestEveryDeliveryCountsEveryMessage combines each delivery with each version of TLS, and each of both with each
// encoding.
func TestEveryDeliveryCountsEveryMessage(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	encodings := [][2]string{{"None", "None"}, {"Gzip", "AES128GCM"}, {"Zstd", "None"}}
	for first, delivery := range []string{"AtMostOnce", "AtLeastOnce", "ExactlyOnce"} {
		for second, tls := range []string{"None", "TLSv1.2", "TLSv1.3"} {
			encoding := encodings[(first+second)%len(encodings)]
			t.Run(delivery+" "+tls+" "+encoding[0], func(t *testing.T) {
				arguments := broker.arguments(tls, "delivery="+delivery, "messages=30", "pairs=3", "inFlight=2",
					"content=SensorJSON", "compression="+encoding[0], "encryption="+encoding[1], "trials=2-3", "warmupTrials=1")
				trials := measured(t, arguments...)
				if len(trials) != 3 || !trials[0].Warmup || trials[2].Trial != 3 {
					t.Errorf("%d trials", len(trials))
				}
				exchange := trials[1].Exchange
				if exchange.Received != 90 || exchange.ReceivedBytes != 90*1024 || exchange.Duplicated+exchange.Errors+exchange.OutOfOrder != 0 {
					t.Errorf("%+v", exchange)
				}
				if acknowledged := exchange.Acknowledged == 90; acknowledged != (delivery != "AtMostOnce") {
					t.Errorf("%d acknowledged", exchange.Acknowledged)
				}
				if (exchange.Cipher != "") != (tls != "None") || (exchange.TLSNanoseconds > 0) != (tls != "None") || exchange.ConnectNanoseconds == 0 {
					t.Errorf("%+v", exchange)
				}
				if (exchange.CompressNanoseconds > 0) != (encoding[0] != "None") || (exchange.DecryptNanoseconds > 0) != (encoding[1] != "None") {
					t.Errorf("%+v", exchange)
				}
				if least := exchange.EncodedBytes; exchange.WireSentBytes < least || exchange.WireReceivedBytes < least {
					t.Errorf("%+v", exchange)
				}
				if trials[1].Distributions.RoundTrip.Count != 90 {
					t.Errorf("%+v", trials[1].Distributions.RoundTrip)
				}
			})
		}
	}
}

func TestMessagesOfAllSizesArrive(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	for _, size := range []int{2, 7, 8, 1 << 20} {
		trial := measured(t, broker.arguments("None", fmt.Sprintf("sizeBytes=%d", size), "messages=40", "asFastAsPossible", "maxInFlight=8")...)[0]
		if want := int64(40 * size); trial.Exchange.Received != 40 || trial.Exchange.ReceivedBytes != want {
			t.Errorf("%d bytes: %+v", size, trial.Exchange)
		}
	}
}

func TestFolderMessagesAreCountedByTheirSizes(t *testing.T) {
	t.Parallel()
	broker, folder := startMosquitto(t, later), t.TempDir()
	write(t, filepath.Join(folder, "1"), "message 1")
	write(t, filepath.Join(folder, "2"), fmt.Sprintf("%02000d", 2))
	for _, encoding := range [][]string{nil, {"compression=Gzip", "encryption=AES128GCM"}} {
		arguments := append(broker.arguments("None", "contentFolder="+folder, "messages=40", "inFlight=4"), encoding...)
		exchange := measured(t, arguments...)[0].Exchange
		if exchange.Received != 40 || exchange.SentBytes != 20*2009 || exchange.ReceivedBytes != 20*2009 || exchange.Errors != 0 {
			t.Errorf("%v: %+v", encoding, exchange)
		}
		if (exchange.EncodedBytes == exchange.SentBytes) != (encoding == nil) {
			t.Errorf("%v: %d bytes encoded", encoding, exchange.EncodedBytes)
		}
	}
}

func TestKafkaDriverAllowsTheLargestFolderMessage(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "1"), "message 1")
	write(t, filepath.Join(folder, "2"), fmt.Sprintf("%05000d", 2))
	given := &plan.BrokerPlan{TLS: "None", Encryption: "None", ContentFolder: folder}
	content, err := pool(given)
	if err != nil {
		t.Fatal(err)
	}
	target, err := brokerTarget(given, &plan.BrokerTarget{URL: "kafka://host:1"}, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	if made := target.Options.Driver.(*kafka.Driver); made.MessageBytes != 5000 {
		t.Errorf("%d bytes", made.MessageBytes)
	}
}

func TestIPv6AddressesHaveBrackets(t *testing.T) {
	content, err := payload.New("Zeros", 1024, 1)
	if err != nil {
		t.Fatal(err)
	}
	for url, secured := range map[string]string{"mqtt://[fd00::5]:1883": "None", "mqtts://[fd00::5]:1883": "TLSv1.3"} {
		driver, err := newDriver(&plan.BrokerPlan{TLS: secured}, &plan.BrokerTarget{URL: url}, content, nil)
		if err != nil {
			t.Fatal(err)
		}
		made := driver.(*mqtt.Driver)
		if made.Address != "[fd00::5]:1883" || made.TLS != nil && made.TLS.ServerName != "fd00::5" {
			t.Errorf("%s: %+v", url, made)
		}
	}
}

func TestTuningIsRecordedAndAllMessagesAreCounted(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	for _, tuning := range []string{"Light", "Heavy"} {
		trial := measured(t, broker.arguments("TLSv1.3", "tuning="+tuning, "messages=300", "inFlight=4")...)[0]
		if trial.Client.Tuning != tuning || trial.Exchange.Received != 300 || trial.Exchange.Steady == nil {
			t.Errorf("%+v, %+v", trial.Client, trial.Exchange)
		}
		if left := trial.Distributions.RoundTrip.Count; left+trial.Exchange.Discarded != 300 {
			t.Errorf("%d round trips, %d discarded", left, trial.Exchange.Discarded)
		}
		if computer := trial.Client.Computer; computer.Interface == "" || computer.MTUBytes == nil || computer.CongestionControl == "" {
			t.Errorf("%+v", computer)
		}
	}
}

// TestPaceIsKept sends a number of messages, or as many as are due in a time, of which some may not be sent.
func TestPaceIsKept(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	const interval = 5 * time.Millisecond
	for load, all := range map[string]bool{"messages=400": true, "durationSeconds=2": false} {
		trial := measured(t, broker.arguments("None", "messagesPerSecond=200", load)...)[0]
		exchange, lasted := trial.Exchange, time.Duration(trial.DurationNanoseconds)
		if exchange.Sent+exchange.Unsent != 400 || all && exchange.Unsent != 0 || lasted < time.Duration(exchange.Sent-1)*interval {
			t.Errorf("%s: %d sent, %d not, of 400 that were due in 2 s, in %v", load, exchange.Sent, exchange.Unsent, lasted)
		}
	}
}

// Tests of magnitudes need a machine without other load. Their names begin with TestMeasures, so that they can run alone.
func TestMeasuresAPace(t *testing.T) {
	trial := measured(t, startMosquitto(t, later).arguments("None", "messagesPerSecond=200", "durationSeconds=2")...)[0]
	if exchange := trial.Exchange; exchange.Unsent > 40 {
		t.Errorf("%d sent, %d not, of 400 that were due in 2 s", exchange.Sent, exchange.Unsent)
	}
}

func TestOverloadIsCountedAsLateSends(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	trial := measured(t, broker.arguments("None", "messagesPerSecond=20000", "durationSeconds=1", "sizeBytes=65536", "maxInFlight=16", patient)...)[0]
	intended, actual := trial.Distributions.RoundTrip.Quantile(0.5), trial.Distributions.RoundTripActual.Quantile(0.5)
	if due := trial.Exchange.Sent + trial.Exchange.Unsent; due != 20000 || trial.Exchange.Unsent == 0 {
		t.Errorf("%d sent and %d not, of 20000 that were due", trial.Exchange.Sent, trial.Exchange.Unsent)
	}
	if trial.Exchange.LateSends == 0 || trial.Exchange.Lost != 0 || intended < 2*actual {
		t.Errorf("%d late, %d lost, %d ns from the intended time, %d from the actual", trial.Exchange.LateSends, trial.Exchange.Lost, intended, actual)
	}
}

func TestEchoPartSendsMessagesBack(t *testing.T) {
	t.Parallel()
	for _, keeps := range []string{"connections=EachTrial", "connections=Kept"} {
		t.Run(keeps, func(t *testing.T) {
			t.Parallel()
			echoesComeBack(t, keeps)
		})
	}
}

func echoesComeBack(t *testing.T, more ...string) {
	broker := startMosquitto(t, later)
	common := append(agentFields(t, agent.Options{}), "messages=20", "inFlight=4", "pairs=2", "delivery=ExactlyOnce", "trials=1-2",
		"barrier=b", "parts=2", "--output=json")
	common = append(common, more...)
	var outs [2]bytes.Buffer
	echo := process(t, &outs[1], append(broker.arguments("None", common...), "role=Echo", "part=1", "--termination-log="+filepath.Join(t.TempDir(), "log"))...)
	log := filepath.Join(t.TempDir(), "log")
	publisher := process(t, &outs[0], append(broker.arguments("None", common...), "role=Publisher", "part=0", "--termination-log="+log)...)
	if code := exitCode(t, publisher); code != 0 {
		t.Fatalf("publisher: exit code %d: %s", code, read(t, log))
	}
	if code := exitCode(t, echo); code != 0 {
		t.Fatalf("echo: exit code %d", code)
	}
	trials, _ := contracttest.Check(t, outs[0].Bytes(), read(t, log))
	for _, trial := range trials {
		if trial.Exchange.Received != 40 || trial.Server == nil {
			t.Errorf("%+v", trial.Exchange)
		}
	}
}

func TestRefusalHasItsReason(t *testing.T) {
	t.Parallel()
	usual := startMosquitto(t, later)
	other := startMosquitto(t, later)
	for name, test := range map[string]struct {
		reason    string
		arguments []string
	}{
		"password":    {"CredentialsRefused", instead(usual.arguments("None"), "passwordFile="+usual.folder+"/wrong")},
		"CA":          {"CertificateUnknown", instead(usual.arguments("TLSv1.3"), "caFile="+other.folder+"/tls.crt")},
		"name":        {"CertificateUnknown", usual.arguments("TLSv1.2", "serverName=another")},
		"expired":     {"CertificateExpired", startMosquitto(t, time.Now().Add(-time.Hour)).arguments("TLSv1.3")},
		"no TLS":      {"TlsVersionRefused", instead(usual.arguments("TLSv1.3"), fmt.Sprintf("url=mqtts://127.0.0.1:%d", usual.port))},
		"unreachable": {"BrokerUnreachable", instead(usual.arguments("None", "readyMilliseconds=300"), "url=mqtt://127.0.0.1:1")},
		"messages":    {"MessagesUnusable", usual.arguments("None", "contentFolder=/absent")},
		"size":        {"PayloadNotDelivered", startMosquitto(t, later, "message_size_limit 500").arguments("None", "deliveryTimeoutMilliseconds=300")},
		"packet":      {"PayloadNotDelivered", startMosquitto(t, later, "max_packet_size 500").arguments("None", "deliveryTimeoutMilliseconds=300")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, trials, seal := sealed(t, append(test.arguments, "messages=10", "inFlight=1")...)
			if code != exitFailure || len(trials) != 0 || seal.Failure == nil || seal.Failure.Reason != test.reason {
				t.Errorf("exit code %d, %+v", code, seal.Failure)
			}
		})
	}
}

func TestBrokerWithLowerQoSIsRefused(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	port := porttest.Free(t)
	config := string(read(t, broker.config)) + fmt.Sprintf("listener %d 127.0.0.1\nmax_qos 1\n", port)
	write(t, broker.config, config)
	broker.restart(t)
	url := fmt.Sprintf("url=mqtt://127.0.0.1:%d", port)
	_, _, seal := sealed(t, broker.arguments("None", url, "delivery=ExactlyOnce", "messages=10", "inFlight=1")...)
	if seal.Failure == nil || seal.Failure.Reason != "LowerQosGranted" {
		t.Errorf("%+v", seal.Failure)
	}
}

func TestWrongBrokerArgumentsAreReportedWithAHint(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	for wrong, says := range map[string]string{
		"url=tcp://host:1":               "mqtt://",
		"url=mqtt://host":                "HOST:PORT",
		"inFlight=0":                     "need inFlight",
		"pacing.intervalNanoseconds=1":   "OpenLoop needs it",
		"durationSeconds=1":              "exactly one of messages",
		"sizeBytes=1":                    "sizeBytes is 1",
		"delivery=Sometimes":             "AtLeastOnce",
		"content=Noise":                  "SensorJSON",
		"compression=Gzip:0":             "Gzip:1",
		"parts=2":                        "barrier",
		"part=1":                         "count from 0",
		"role=Echo":                      "several parts",
		"group.publishers=65":            "group.publishers",
		"group.subscription=Some":        "Shared",
		"encryption=AES256":              "AES128GCM",
		"agent.url=https://127.0.0.1:80": "tokenFile",
	} {
		_, _, seal := sealed(t, instead(broker.arguments("None", "messages=1", "inFlight=1"), wrong)...)
		if seal.Failure == nil || seal.Failure.Reason != "InvalidArguments" || !bytes.Contains([]byte(seal.Failure.Message), []byte(says)) {
			t.Errorf("%s: %+v", wrong, seal.Failure)
		}
	}
}
