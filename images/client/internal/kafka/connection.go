package kafka

import (
	"errors"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/tcpinfo"
	"tierbench.io/client/internal/transport"
)

// emptyRecord is the size of a record without key, value and headers, in a batch of its own.
const emptyRecord = 7

// connection is one client, with any number of TCP connections.
type connection struct {
	driver    *Driver
	options   []kgo.Opt
	client    *kgo.Client
	events    broker.Events
	commits   *commits // of ExactlyOnce alone
	published atomic.Int64
	written   atomic.Int64 // records, including resent ones
	fetches   chan struct{}
	creating  sync.WaitGroup // requests that create a topic

	mutex      sync.Mutex
	statistics broker.Statistics
	open       map[*conn]struct{}
	standing   int // of these, those that carry messages
	connected  bool
	lost       bool // the last of them broke
	closing    bool
	failed     error // of the last attempt to connect
	certified  bool  // the broker asked for a certificate
	refused    time.Time
	topic      string // deleted with this connection
	reads      bool
	begun      int64 // the topic's length minus what was published, when no message was in flight
}

func newConnection(driver *Driver, events broker.Events) *connection {
	made := &connection{driver: driver, events: events, fetches: make(chan struct{}, 1), open: map[*conn]struct{}{}}
	made.statistics.Errors = map[string]int64{}
	return made
}

func (c *connection) fail(err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.failed, c.refused = err, time.Now()
}

// untilNext returns the pause before the next attempt to connect, because some retries of the client have no pause.
func (c *connection) untilNext() time.Duration {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return time.Until(c.refused.Add(retryPause))
}

// opened records a connection. It ignores the connection that removes the topic, which is not measured.
func (c *connection) opened(one *conn) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.closing {
		return
	}
	c.open[one] = struct{}{}
	c.certified = one.Asked
	c.statistics.Handshakes.Count(one.Cipher != "", one.Resumed)
	if !c.connected {
		c.statistics.TLS = one.Handshake
		c.statistics.Transport = broker.Transport{Local: one.TCP.LocalAddr(), Congestion: one.Congestion(), Cipher: one.Cipher}
	}
}

// ended reads the kernel's counters before they are gone.
func (c *connection) ended(one *conn) {
	counters, err := tcpinfo.Read(one.TCP)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if _, known := c.open[one]; known && err == nil {
		c.statistics.Wire.Add(counters)
	}
	delete(c.open, one)
	if !one.active.Load() {
		return
	}
	if c.standing--; c.standing == 0 && !c.closing {
		c.lost = true
		c.statistics.Errors[contract.Disconnected]++
	}
}

// producerEnded closes the connections of a producer that never sends again. Nothing reads from them, so only the kernel knows
// that they broke.
func (c *connection) producerEnded() {
	var sent []*conn
	c.mutex.Lock()
	for one := range c.open {
		if !one.produces.Load() {
			continue
		}
		sent = append(sent, one)
		if tcpinfo.Established(one.TCP) && one.active.Swap(false) {
			c.standing--
		}
	}
	c.mutex.Unlock()
	for _, one := range sent {
		_ = one.Close()
	}
}

// OnBrokerConnect is called for every connection that the broker has accepted or refused.
func (c *connection) OnBrokerConnect(_ kgo.BrokerMetadata, took time.Duration, over net.Conn, err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err != nil {
		c.failed = err
		return
	}
	if one, ours := over.(*conn); ours && !c.connected {
		c.connected, c.statistics.Connect = true, took-one.Handshake
	}
}

// markActive records a connection that carries messages. Bootstrap connections do not count.
func (c *connection) markActive() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.lost {
		c.lost = false
		c.statistics.Reconnects++
	}
	c.standing++
}

// OnProduceBatchWritten counts what the broker has accepted, except for what Prepare sent.
func (c *connection) OnProduceBatchWritten(_ kgo.BrokerMetadata, _ string, _ int32, batch kgo.ProduceBatchMetrics) {
	if batch.UncompressedBytes <= emptyRecord {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.statistics.Batches++
	c.statistics.BatchBytes += int64(batch.CompressedBytes)
}

// refusal returns the reason why a connection failed: a *contract.Failure if a retry cannot succeed.
func (c *connection) refusal(err error) error {
	c.mutex.Lock()
	if c.failed != nil {
		err = c.failed
	}
	asked := c.certified
	c.mutex.Unlock()
	if errors.Is(err, kerr.SaslAuthenticationFailed) || errors.Is(err, kerr.UnsupportedSaslMechanism) {
		return transport.Failure("CredentialsRefused", "the broker refuses the user or the password with SCRAM-SHA-512: check both", err)
	}
	return transport.Refusal(err, c.driver.TLS != nil, asked)
}

// Connected reports whether a connection that carries messages is open. A producer without messages to send does not
// reconnect, and counts as connected. What it sent without acknowledgement may be lost, and nothing else is in flight.
func (c *connection) Connected() bool {
	c.mutex.Lock()
	standing, reads := c.standing > 0, c.reads
	c.mutex.Unlock()
	return standing || !reads && c.client.BufferedProduceRecords() == 0
}

// Statistics returns the statistics so far, including those of open connections.
func (c *connection) Statistics() broker.Statistics {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := c.statistics
	now.Errors = maps.Clone(now.Errors)
	now.Resent = max(0, c.written.Load()-c.published.Load())
	for one := range c.open {
		if counters, err := tcpinfo.Read(one.TCP); err == nil {
			now.Wire.Add(counters)
		}
	}
	return now
}

// Close ends the client, and deletes its topic, even without an open connection: a slow broker may have lost one for a
// moment.
func (c *connection) Close() {
	if c.commits != nil {
		c.commits.stop()
	}
	c.mutex.Lock()
	topic := c.topic
	c.closing = true
	c.mutex.Unlock()
	if topic != "" {
		c.remove(topic)
	}
	if c.commits != nil {
		c.commits.close()
	}
	c.client.Close()
}
