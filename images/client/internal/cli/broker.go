package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tierbench.io/client/internal/agentclient"
	"tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/kafka"
	"tierbench.io/client/internal/payload"
)

const (
	mostPairs      = 256
	mostPartitions = 256
	mostLinger     = 60_000
	mostBatch      = 16 << 20
)

// spareHeap is never touched, so it takes no memory. It delays garbage collection: a heap of only a few messages would be
// collected a hundred times per second.
const spareHeap = 32 << 20

var roles = []broker.Role{broker.Both, broker.Publisher, broker.Echo, broker.Alone}

var deliveries = map[string]byte{"AtMostOnce": 0, "AtLeastOnce": 1, "ExactlyOnce": 2}

type brokerFlags struct {
	ending
	seriesFlags
	egressFlags
	url, usernameFile, passwordFile, caFile, topic                             []string
	serverName, tls, role, barrier                                             string
	content, contentFolder, delivery, compression, encryption, keyFile, tuning string
	size, pairs, firstPair, inFlight, unacknowledged, interval, rate, window   int
	messages                                                                   int64
	duration, deliveryTimeoutMilliseconds, ready, warmRounds, part, parts      int
	codec                                                                      string
	partitions, linger, batch                                                  int
	seed                                                                       uint64
	fast, keeps                                                                bool
}

func brokerCommand() *cobra.Command {
	flags := &brokerFlags{}
	command := &cobra.Command{
		Use:   "broker --url mqtt://HOST:PORT|kafka://HOST:PORT",
		Short: "Publish and receive through a broker, trial after trial, and measure each",
		Long: `Publishes messages to a broker and receives them again, trial after trial, and counts them. A round trip starts at the
time at which a message should have been sent. At any pace, a publisher has at most as many messages in flight as its
window allows.`,
		Example: "  tierbench-client broker --url mqtt://broker:1883 --size 1024 --messages 1000 --in-flight 1 --trials 1-10",
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return runBroker(command.Context(), flags) },
	}
	flags.add(command.Flags())
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return flags.refuse(fmt.Errorf("%w: see tierbench-client broker --help", err))
	})
	return command
}

func (f *brokerFlags) add(set *pflag.FlagSet) {
	set.StringArrayVar(&f.url, "url", nil, "the broker: mqtt, mqtts, kafka or kafkas://HOST:PORT; repeat it for each target")
	set.StringArrayVar(&f.usernameFile, "username-file", nil, "file with the user's name; repeat it for each target")
	set.StringArrayVar(&f.passwordFile, "password-file", nil, "file with the password; repeat it for each target")
	set.StringVar(&f.tls, "tls", "None", "None, TLSv1.2 or TLSv1.3: exactly this version")
	set.StringArrayVar(&f.caFile, "ca-file", nil, "trust this CA instead of the system's; repeat it for each target")
	set.StringVar(&f.serverName, "server-name", "", "name in the broker's certificate, and in the addresses that Kafka advertises (default: the URL's host)")
	set.StringArrayVar(&f.topic, "topic", []string{"tierbench"}, "prefix of all topics; repeat it for each target")
	set.IntVar(&f.pairs, "pairs", 1, "number of publishers, each with its own subscriber")
	set.IntVar(&f.firstPair, "first-pair", 0, "number of the first of them")
	set.StringVar(&f.role, "role", "Both", "Both, Publisher (messages come back from an echo), Echo or Alone (without subscribers)")
	set.IntVar(&f.size, "size", 1024, "bytes of a message, before compression and encryption")
	set.StringVar(&f.content, "content", "Random", "Random, Zeros, SensorJSON or Ratio10 … Ratio90")
	set.StringVar(&f.contentFolder, "content-folder", "", "send the files of a folder in turn instead of --size bytes of --content")
	set.Uint64Var(&f.seed, "seed", 1, "of the content")
	set.StringVar(&f.delivery, "delivery", "AtMostOnce", "AtMostOnce, AtLeastOnce or ExactlyOnce: QoS 0, 1 or 2; acks 0, acks all or transactions")
	set.StringVar(&f.compression, "compression", "None", "None, Gzip or Zstd, optionally with a level as in Zstd:11")
	set.StringVar(&f.encryption, "encryption", "None", "None or AES128GCM")
	set.StringVar(&f.keyFile, "key-file", "", "file with the 16 bytes of the key")
	set.IntVar(&f.inFlight, "in-flight", 0, "closed loop: messages of a publisher in flight")
	set.IntVar(&f.unacknowledged, "unacknowledged", 0, "closed loop: unacknowledged messages of a publisher")
	set.BoolVar(&f.fast, "as-fast-as-possible", false, "closed loop: as many as the window allows")
	set.IntVar(&f.interval, "interval-milliseconds", 0, "open loop: time between messages of a publisher")
	set.IntVar(&f.rate, "messages-per-second", 0, "open loop: messages per second of a publisher")
	set.StringVar(&f.tuning, "tuning", broker.Heavy, "Light, for the shortest way of a message on one CPU, or Heavy, for the highest rate")
	set.IntVar(&f.window, "window", 512, "maximum number of messages of a publisher in flight, at any pace")
	set.Int64Var(&f.messages, "messages", 0, "messages of each publisher in a trial")
	set.IntVar(&f.duration, "duration-seconds", 0, "duration of the load of a trial, instead of --messages")
	set.IntVar(&f.deliveryTimeoutMilliseconds, "patience-milliseconds", 10000, "messages in flight count as lost if none arrives for this time")
	set.IntVar(&f.ready, "ready-milliseconds", 60000, "time for the broker and other parts to be ready")
	set.IntVar(&f.warmRounds, "warm-rounds", broker.WarmRounds, "maximum number of warm-up rounds of 0.25 s before the first trial")
	set.BoolVar(&f.keeps, "keep-connections", false, "connect for the first trial of a target, and keep the connections for all others")
	set.StringVar(&f.codec, "codec", "None", "Kafka's own compression of batches: None, Gzip, Snappy, Lz4 or Zstd")
	set.IntVar(&f.partitions, "partitions", 1, "of each of Kafka's topics")
	set.IntVar(&f.linger, "linger-milliseconds", 0, "how long Kafka's batches wait for more messages")
	set.IntVar(&f.batch, "batch-bytes", 1<<20, "of Kafka's largest batches")
	set.StringVar(&f.barrier, "barrier", "", "name of the barrier at which parts meet")
	set.IntVar(&f.part, "part", 0, "number of this part of the client, from 0")
	set.IntVar(&f.parts, "parts", 1, "how many parts it has")
	f.egressFlags.add(set)
	f.seriesFlags.add(set)
	f.ending.add(set)
}

func runBroker(ctx context.Context, flags *brokerFlags) error {
	if err := errors.Join(flags.checkNumbers(), flags.checkWords(), flags.ending.check()); err != nil {
		return flags.refuse(err)
	}
	series, err := flags.series(max(len(flags.url), 1), flags.target)
	if err != nil {
		return flags.refuse(err)
	}
	if flags.tuning == broker.Light {
		runtime.GOMAXPROCS(1)
	}
	ballast := make([]byte, spareHeap)
	defer runtime.KeepAlive(ballast)
	return flags.run(ctx, contract.NewTextReport(os.Stdout, broker.Words), series)
}

func (f *brokerFlags) target(index int, agent *agentclient.Agent) (contract.Target, error) {
	content, err := f.pool()
	if err != nil {
		return nil, err
	}
	driver, err := f.driver(index, len(content.Largest()))
	if err != nil {
		return nil, err
	}
	key, err := f.key()
	if err != nil {
		return nil, err
	}
	return &broker.Target{Options: &broker.Options{
		Driver: driver, Topic: of(f.topic, index), Pairs: f.pairs, FirstPair: f.firstPair,
		Role: broker.Role(f.role), Content: content, Seed: f.seed, Tuning: f.tuning, Compression: f.compression, Encryption: f.encryption, Key: key,
		InFlight: f.maxInFlight(), Unacknowledged: f.unacknowledged, Interval: f.between(), Messages: f.messages,
		Duration: time.Duration(f.duration) * time.Second, DeliveryTimeout: time.Duration(f.deliveryTimeoutMilliseconds) * time.Millisecond,
		Ready: time.Duration(f.ready) * time.Millisecond, Agent: agent, Barrier: f.barrier, Part: f.part, Parts: f.parts,
		Acknowledges: deliveries[f.delivery] > 0, Keeps: f.keeps, WarmRounds: f.warmRounds,
	}}, nil
}

func (f *brokerFlags) pool() (*payload.Pool, error) {
	if f.contentFolder != "" {
		return payload.FromFolder(f.contentFolder)
	}
	pool, err := payload.New(f.content, f.size, f.seed)
	if err != nil {
		return nil, fmt.Errorf("--content: %w", err)
	}
	return pool, nil
}

func (f *brokerFlags) maxInFlight() int {
	most := f.inFlight
	if f.role == string(broker.Alone) {
		most = f.unacknowledged
	}
	if most > 0 {
		return min(most, f.window)
	}
	return f.window
}

func (f *brokerFlags) between() time.Duration {
	if f.rate > 0 {
		return time.Second / time.Duration(f.rate)
	}
	return time.Duration(f.interval) * time.Millisecond
}

func (f *brokerFlags) checkNumbers() error {
	paces := 0
	for _, given := range []bool{f.inFlight > 0, f.unacknowledged > 0, f.fast, f.interval > 0, f.rate > 0} {
		if given {
			paces++
		}
	}
	switch {
	case paces != 1:
		return errors.New("give exactly one of --in-flight, --unacknowledged, --as-fast-as-possible, --interval-milliseconds and --messages-per-second")
	case (f.messages > 0) == (f.duration > 0):
		return errors.New("give exactly one of --messages and --duration-seconds")
	case f.pairs < 1 || f.pairs > mostPairs:
		return fmt.Errorf("--pairs is %d: write 1 to %d", f.pairs, mostPairs)
	case f.size < 2:
		return errors.New("--size must be at least 2: the first bytes number the message")
	case f.window < 1 || f.window > 65000 || f.size < 3 && f.window > 32000:
		return errors.New("--window must be from 1 to 65000, and at most 32000 for messages of 2 bytes, whose numbers repeat")
	case f.deliveryTimeoutMilliseconds < 1, f.ready < 0, f.firstPair < 0, f.inFlight < 0, f.unacknowledged < 0, f.interval < 0, f.rate < 0, f.warmRounds < 0:
		return errors.New("--patience-milliseconds must be at least 1, and nothing may be negative")
	case f.parts < 1 || f.part < 0 || f.part >= f.parts:
		return fmt.Errorf("--part is %d of --parts %d: parts count from 0", f.part, f.parts)
	case f.partitions < 1 || f.partitions > mostPartitions:
		return fmt.Errorf("--partitions is %d: write 1 to %d", f.partitions, mostPartitions)
	case f.linger < 0 || f.linger > mostLinger || f.batch < 1 || f.batch > mostBatch:
		return fmt.Errorf("--linger-milliseconds must be from 0 to %d, --batch-bytes from 1 to %d", mostLinger, mostBatch)
	}
	return nil
}

func (f *brokerFlags) checkWords() error {
	for flag, given := range map[string][]string{
		"topic": f.topic, "username-file": f.usernameFile, "password-file": f.passwordFile, "ca-file": f.caFile,
	} {
		if err := perTarget(flag, len(given), max(len(f.url), 1)); err != nil {
			return err
		}
	}
	_, known := deliveries[f.delivery]
	switch {
	case !known:
		return fmt.Errorf("--delivery is %q: write AtMostOnce, AtLeastOnce or ExactlyOnce", f.delivery)
	case f.tuning != broker.Light && f.tuning != broker.Heavy:
		return fmt.Errorf("--tuning is %q: write Light or Heavy", f.tuning)
	case !slices.Contains(roles, broker.Role(f.role)):
		return fmt.Errorf("--role is %q: write Both, Publisher, Echo or Alone", f.role)
	case f.role == string(broker.Alone) && f.inFlight > 0:
		return errors.New("--in-flight waits for messages to come back: with --role Alone write --unacknowledged")
	case f.unacknowledged > 0 && deliveries[f.delivery] == 0:
		return errors.New("--unacknowledged waits for acknowledgements, and AtMostOnce has none: write --as-fast-as-possible")
	case !kafka.HasCodec(f.codec):
		return fmt.Errorf("--codec is %q: write None, Gzip, Snappy, Lz4 or Zstd", f.codec)
	case f.parts > 1 && (len(f.agent) == 0 || f.barrier == ""):
		return errors.New("--parts above 1 needs --agent and --barrier, where they meet")
	case f.role == string(broker.Echo) && f.parts < 2:
		return errors.New("--role Echo needs --parts: it ends when the publishers say so")
	}
	_, err := payload.NewCodec(f.compression, "None", nil)
	return err
}

func (f *brokerFlags) key() ([]byte, error) {
	if f.encryption == "None" {
		return nil, nil
	}
	key, err := os.ReadFile(f.keyFile)
	if err != nil {
		return nil, fmt.Errorf("--key-file: %w", err)
	}
	_, err = payload.NewCodec("None", f.encryption, key)
	return key, err
}

// wordIn returns the content of a file without surrounding space. It is empty if no file is named.
func wordIn(flag, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("--%s: %w", flag, err)
	}
	return strings.TrimSpace(string(content)), nil
}
