// Package mqtt is the driver for MQTT: 3.1.1 by Eclipse Paho's client, and 5 by its packets.
package mqtt

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/egress"
	"tierbench.io/client/internal/tcpinfo"
	"tierbench.io/client/internal/transport"
)

const (
	connectTimeout  = 10 * time.Second
	reconnectPause  = 200 * time.Millisecond
	keepAlive       = 60 * time.Second
	disconnectGrace = 250 // milliseconds
)

// Driver connects to one MQTT broker.
type Driver struct {
	Address            string // HOST:PORT
	TLS                *tls.Config
	Username, Password string
	Version            string // 3.1.1, or Version5
	QoS                byte
	Timeout            time.Duration // for a write to the socket
	Refused            egress.Networks
	MessageBytes       int  // of the largest message
	Gathers            bool // messages in quick succession are sent together: for the highest rate, not for the shortest round trip
}

func init() { paho.ERROR = log.New(io.Discard, "", 0) }

// link is common to the clients of all versions: their socket, and its statistics.
type link struct {
	driver *Driver
	name   string
	live   atomic.Pointer[conn]

	mutex      sync.Mutex
	statistics broker.Statistics
	certified  bool // the broker asked for a certificate
	connected  bool // once
	unsure     bool // something that is not acknowledged may not have reached the broker
}

// connection is one client of the broker.
type connection struct {
	link
	client paho.Client
	store  *store

	dialFailed error
	topic      string
	arrived    paho.MessageHandler
}

// Connect creates a client. QoS 1 and 2 keep their session while the connection is lost.
func (d *Driver) Connect(ctx context.Context, name string, events broker.Events) (broker.Connection, error) {
	if d.Version == Version5 {
		return d.connect5(ctx, name, events)
	}
	made := newConnection(d, name, events)
	made.client = paho.NewClient(made.options(d.QoS == 0))
	started := time.Now()
	token := made.client.Connect()
	select {
	case <-token.Done():
	case <-ctx.Done():
		made.client.Disconnect(0)
		return nil, fmt.Errorf("%s does not answer: %w", d.Address, ctx.Err())
	}
	if err := token.Error(); err != nil {
		return nil, made.refusal(err)
	}
	made.mutex.Lock()
	made.statistics.Connect = time.Since(started) - made.statistics.TLS
	made.mutex.Unlock()
	return made, nil
}

func newConnection(driver *Driver, name string, events broker.Events) *connection {
	made := &connection{link: link{driver: driver, name: name, statistics: noStatistics()}}
	made.store = newStore(func(number uint64) {
		if events.Acknowledged != nil {
			events.Acknowledged(number, time.Now())
		}
	})
	return made
}

func noStatistics() broker.Statistics { return broker.Statistics{Errors: map[string]int64{}} }

func (c *connection) options(clean bool) *paho.ClientOptions {
	options := paho.NewClientOptions()
	options.AddBroker("tcp://" + c.driver.Address)
	options.SetClientID(c.name).SetUsername(c.driver.Username).SetPassword(c.driver.Password)
	options.SetProtocolVersion(4).SetCleanSession(clean).SetKeepAlive(keepAlive)
	options.SetConnectTimeout(connectTimeout).SetStore(c.store)
	options.SetAutoReconnect(true).SetMaxReconnectInterval(reconnectPause).SetResumeSubs(true)
	options.SetWriteTimeout(c.driver.Timeout) // of Publish too, which waits for the socket
	options.SetOrderMatters(true).SetMessageChannelDepth(1 << 12)
	options.SetCustomOpenConnectionFn(c.dial)
	options.SetConnectionLostHandler(func(paho.Client, error) { c.count(contract.Disconnected) })
	options.SetOnConnectHandler(func(paho.Client) { c.isConnected() })
	return options
}

func (l *link) count(cause string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.statistics.Errors[cause]++
	l.unsure = true
}

// isConnected counts reconnects, and subscribes again, because the broker may have lost the session.
func (c *connection) isConnected() {
	c.mutex.Lock()
	again := c.connected
	if again {
		c.statistics.Reconnects++
	}
	c.connected = true
	topic, arrived := c.topic, c.arrived
	c.mutex.Unlock()
	if again && arrived != nil {
		c.client.Subscribe(topic, c.driver.QoS, arrived)
	}
}

func (c *connection) dial(*url.URL, paho.ClientOptions) (net.Conn, error) {
	over, err := c.open(context.Background())
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.dialFailed = err
	if err != nil {
		return nil, err
	}
	return over, nil
}

func (l *link) open(ctx context.Context) (*conn, error) {
	made, err := transport.Dial(ctx, transport.Options{Address: l.driver.Address, TLS: l.driver.TLS, Timeout: l.driver.Timeout, Quick: !l.driver.Gathers, Refused: l.driver.Refused})
	if err != nil {
		return nil, err
	}
	l.mutex.Lock()
	l.certified = made.Asked
	l.statistics.Handshakes.Count(made.Cipher != "", made.Resumed)
	if !l.connected {
		l.statistics.TLS = made.Handshake
		l.statistics.Transport = broker.Transport{Local: made.TCP.LocalAddr(), Congestion: made.Congestion(), Cipher: made.Cipher}
	}
	l.mutex.Unlock()
	over := newConn(made, l.driver.Gathers, l.driver.MessageBytes, l.closed)
	l.live.Store(over)
	return over, nil
}

func (l *link) closed(counters tcpinfo.Counters) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.statistics.Wire.Add(counters)
	l.live.Store(nil)
}

// Subscribe requests the driver's QoS, and fails if the broker grants a lower one.
func (c *connection) Subscribe(ctx context.Context, topic string, arrived func([]byte, time.Time)) error {
	handler := func(_ paho.Client, message paho.Message) { arrived(message.Payload(), time.Now()) }
	c.mutex.Lock()
	c.topic, c.arrived = topic, handler
	c.mutex.Unlock()
	token := c.client.Subscribe(topic, c.driver.QoS, handler)
	select {
	case <-token.Done():
	case <-ctx.Done():
		return context.Canceled
	case <-time.After(connectTimeout):
		return unanswered
	}
	var granted byte
	for _, granted = range token.(*paho.SubscribeToken).Result() { // of one topic, which is named without $share/NAME/
	}
	if granted <= 2 && token.Error() != nil {
		return token.Error()
	}
	return c.driver.isGranted(topic, granted)
}

// Prepare does little, because a connection is ready for every topic.
func (l *link) Prepare(context.Context, string, bool) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.unsure = false
	return nil
}

// Publish passes a message to the client, which keeps it at QoS 1 and 2 until it is acknowledged.
func (c *connection) Publish(topic string, number uint64, message []byte) error {
	if c.driver.QoS > 0 {
		c.store.expect(number)
	}
	if token := c.client.Publish(topic, c.driver.QoS, false, message); c.driver.QoS == 0 && token.Error() != nil {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.unsure = true
	}
	return nil
}

// Confirm ends a subscription, which need not exist. The broker answers in order, so the answer comes after all messages.
func (c *connection) Confirm(ctx context.Context) error {
	token := c.client.Unsubscribe(c.name)
	select {
	case <-token.Done():
	case <-ctx.Done():
		return fmt.Errorf("the broker does not answer: %w", ctx.Err())
	}
	return errors.Join(c.isSure(), token.Error())
}

func (l *link) isSure() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.unsure {
		return errors.New("the connection broke off, or accepts no more messages")
	}
	return nil
}

// Connected reports whether the connection is usable.
func (c *connection) Connected() bool { return c.client.IsConnectionOpen() }

// Statistics returns the statistics so far, including those of the open connection.
func (c *connection) Statistics() broker.Statistics {
	now := c.link.Statistics()
	now.Resent = c.store.countResent()
	return now
}

// Statistics returns the statistics so far, including those of the open connection.
func (l *link) Statistics() broker.Statistics {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	now := l.statistics
	now.Errors = maps.Clone(now.Errors)
	if live := l.live.Load(); live != nil {
		if counters, err := tcpinfo.Read(live.over.TCP); err == nil {
			now.Wire.Add(counters)
		}
	}
	return now
}

// Close ends the client, and the session that the broker keeps for it.
func (c *connection) Close() {
	c.client.Disconnect(disconnectGrace)
	if c.driver.QoS == 0 {
		return
	}
	// This uses its own connection, because its cost is not part of the trial.
	cleaner := newConnection(c.driver, c.name, broker.Events{})
	last := paho.NewClient(cleaner.options(true).SetAutoReconnect(false))
	if token := last.Connect(); token.WaitTimeout(connectTimeout) && token.Error() == nil {
		last.Disconnect(disconnectGrace)
	}
}
