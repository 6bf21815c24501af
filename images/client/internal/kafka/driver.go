// Package kafka is the driver for Apache Kafka, based on franz-go.
package kafka

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/egress"
	"tierbench.io/client/internal/transport"
	"tierbench.io/client/internal/wait"
)

// Delivery guarantees.
const (
	AtMostOnce  = "AtMostOnce"
	AtLeastOnce = "AtLeastOnce"
	ExactlyOnce = "ExactlyOnce"
)

const (
	retryPause     = 200 * time.Millisecond
	fetchWait      = 500 * time.Millisecond
	longestIdle    = 15 * time.Minute // that franz-go allows
	inFlight       = 5                // requests
	batchOverhead  = 1 << 10          // bytes of a batch beyond the message that it holds
	largestRequest = 100 << 20
)

var codecs = map[string]kgo.CompressionCodec{
	"None": kgo.NoCompression(), "Gzip": kgo.GzipCompression(), "Snappy": kgo.SnappyCompression(),
	"Lz4": kgo.Lz4Compression(), "Zstd": kgo.ZstdCompression(),
}

// HasCodec reports whether there is such a codec.
func HasCodec(name string) bool {
	_, known := codecs[name]
	return known
}

// Driver connects to one Kafka cluster.
type Driver struct {
	Address            string // HOST:PORT of a broker
	ServerName         string // a broker that advertises this name is the one at Address
	TLS                *tls.Config
	Username, Password string
	Delivery           string
	Codec              string
	Partitions         int32
	Linger             time.Duration
	BatchBytes         int32         // of the largest batch, if no message is larger
	MessageBytes       int32         // of the largest message
	Timeout            time.Duration // for an answer of the broker
	Quick              bool          // for a light load
	Refused            egress.Networks
	Allowed            egress.Hosts // where the broker at Address may send its clients
	Buffered           int          // most messages that are handed over and not yet acknowledged, or not yet written if nothing is
}

// Connect creates a client with its own connections, and checks that the broker answers.
func (d *Driver) Connect(ctx context.Context, name string, events broker.Events) (broker.Connection, error) {
	made := newConnection(d, events)
	made.options = append(d.options(name), kgo.Dialer(made.dial), kgo.WithHooks(made))
	var err error
	if made.client, err = kgo.NewClient(made.options...); err != nil {
		return nil, &contract.Failure{Reason: "InvalidArguments", Message: err.Error()}
	}
	if err := made.client.Ping(ctx); err != nil {
		made.client.Close()
		return nil, made.refusal(err)
	}
	if d.Delivery == ExactlyOnce {
		made.commits = startCommits(made)
	}
	return made, nil
}

func (d *Driver) options(name string) []kgo.Opt {
	options := []kgo.Opt{
		kgo.ClientID(name), kgo.SeedBrokers(d.Address), kgo.DisableClientMetrics(), kgo.ConnIdleTimeout(longestIdle),
		kgo.RequestTimeoutOverhead(d.Timeout), kgo.ProduceRequestTimeout(d.Timeout),
		kgo.RetryBackoffFn(func(int) time.Duration { return retryPause }), kgo.MetadataMinAge(retryPause), kgo.AlwaysRetryEOF(),
		kgo.UnknownTopicRetries(-1), kgo.ProducerBatchCompression(codecs[d.Codec]), kgo.ProducerLinger(d.Linger),
		kgo.ProducerBatchMaxBytes(max(d.BatchBytes, batchOf(d.MessageBytes))), kgo.MaxBufferedRecords(d.Buffered),
		kgo.BrokerMaxReadBytes(largestRequest), kgo.FetchMaxWait(fetchWait), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	}
	if d.Username != "" {
		options = append(options, kgo.SASL(scram.Auth{User: d.Username, Pass: d.Password}.AsSha512Mechanism()))
	}
	switch d.Delivery {
	case AtMostOnce:
		return append(options, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	case AtLeastOnce:
		return append(options, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(inFlight))
	}
	return append(options, kgo.TransactionalID(name))
}

// dial opens a connection that is counted. The broker is always reached at the given address, whatever address and port it
// advertises.
func (c *connection) dial(ctx context.Context, _, advertised string) (net.Conn, error) {
	address := advertised
	if host, _, err := net.SplitHostPort(advertised); err == nil && host == c.driver.ServerName {
		address = c.driver.Address
	}
	if address != c.driver.Address {
		var err error
		if address, err = c.driver.Allowed.Resolve(ctx, address); err != nil {
			c.fail(err)
			return nil, err
		}
	}
	if err := wait.For(ctx, c.untilNext()); err != nil {
		return nil, err
	}
	over, err := transport.Dial(ctx, transport.Options{Address: address, TLS: c.driver.TLS, Timeout: c.driver.Timeout, Quick: c.driver.Quick, Refused: c.driver.Refused})
	if err != nil {
		c.fail(err)
		return nil, err
	}
	made := &conn{Conn: over, owner: c}
	c.opened(made)
	return made, nil
}

// batchOf returns the maximum size of a batch with one message. Compression and encryption can make random bytes longer.
func batchOf(message int32) int32 { return message + message>>8 + 1<<10 }

// topicName replaces what Kafka does not allow.
func topicName(topic string) string { return strings.ReplaceAll(topic, "/", ".") }
