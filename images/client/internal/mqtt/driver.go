// Package mqtt is the driver for MQTT 3.1.1, based on Eclipse Paho's client.
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
	QoS                byte
	Timeout            time.Duration // for a write to the socket
	Refused            egress.Networks
	MessageBytes       int  // of the largest message
	Gathers            bool // messages that follow closely leave together: for the highest rate, not for the shortest way
}

func init() { paho.ERROR = log.New(io.Discard, "", 0) }

// connection is one client of the broker.
type connection struct {
	driver *Driver
	client paho.Client
	name   string
	store  *store
	live   atomic.Pointer[conn]

	mutex      sync.Mutex
	statistics broker.Statistics
	dialFailed error
	connected  bool
	topic      string
	arrived    paho.MessageHandler
	unsure     bool // something that is not acknowledged may not have reached the broker
}

// Connect creates a client. QoS 1 and 2 keep their session while the connection is lost.
func (d *Driver) Connect(ctx context.Context, name string, events broker.Events) (broker.Connection, error) {
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
	made := &connection{driver: driver, name: name}
	made.store = newStore(func(number uint64) {
		if events.Acknowledged != nil {
			events.Acknowledged(number, time.Now())
		}
	})
	made.statistics.Errors = map[string]int64{}
	return made
}

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

func (c *connection) count(cause string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.statistics.Errors[cause]++
	c.unsure = true
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
	over, err := c.open()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.dialFailed = err
	if err != nil {
		return nil, err
	}
	c.live.Store(over)
	return over, nil
}

func (c *connection) open() (*conn, error) {
	made, err := transport.Dial(context.Background(), transport.Options{Address: c.driver.Address, TLS: c.driver.TLS, Timeout: c.driver.Timeout, Quick: !c.driver.Gathers, Refused: c.driver.Refused})
	if err != nil {
		return nil, err
	}
	c.mutex.Lock()
	if !c.connected {
		c.statistics.TLS = made.Handshake
		c.statistics.Transport = broker.Transport{Local: made.TCP.LocalAddr(), Congestion: made.Congestion(), Cipher: made.Cipher}
	}
	c.mutex.Unlock()
	return newConn(made, c.driver.Gathers, c.driver.MessageBytes, c.closed), nil
}

func (c *connection) closed(counters tcpinfo.Counters) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.statistics.Wire.Add(counters)
	c.live.Store(nil)
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
		return &contract.Failure{Reason: "BrokerUnreachable", Message: "the broker does not answer a subscription: see its log"}
	}
	granted := token.(*paho.SubscribeToken).Result()[topic]
	switch {
	case granted > 2:
		message := fmt.Sprintf("the broker refuses the subscription to %s: allow it to this user", topic)
		return &contract.Failure{Reason: "NotAuthorized", Message: message}
	case token.Error() != nil:
		return token.Error()
	case granted < c.driver.QoS:
		message := fmt.Sprintf("the broker grants QoS %d instead of %d: raise its limit, or choose another delivery", granted, c.driver.QoS)
		return &contract.Failure{Reason: "LowerQosGranted", Message: message}
	}
	return nil
}

// Prepare does little, because a connection is ready for every topic.
func (c *connection) Prepare(context.Context, string, bool) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.unsure = false
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
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.unsure {
		return errors.New("the connection broke off, or accepts no more messages")
	}
	return token.Error()
}

// Connected reports whether the connection is usable.
func (c *connection) Connected() bool { return c.client.IsConnectionOpen() }

// Statistics returns the statistics so far, including those of the open connection.
func (c *connection) Statistics() broker.Statistics {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := c.statistics
	now.Errors, now.Resent = maps.Clone(now.Errors), c.store.countResent()
	if live := c.live.Load(); live != nil {
		if counters, err := tcpinfo.Read(live.tcp); err == nil {
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
