// Package mqtt is the broker's driver for MQTT 3.1.1, on Eclipse Paho's client.
package mqtt

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/wire"
)

const (
	connectPatience = 10 * time.Second
	reconnectPause  = 200 * time.Millisecond
	keepAlive       = 60 * time.Second
	disconnectGrace = 250 // milliseconds
)

// Driver speaks with one MQTT broker.
type Driver struct {
	Address            string // HOST:PORT
	TLS                *tls.Config
	Username, Password string
	QoS                byte
	Gathers            bool // messages that follow closely leave together: for the highest rate, not for the shortest way
}

func init() { paho.ERROR = log.New(io.Discard, "", 0) }

// connection is one client of the broker.
type connection struct {
	driver *Driver
	client paho.Client
	name   string
	events broker.Events
	acks   chan pending
	done   sync.WaitGroup
	live   atomic.Pointer[conn]

	mutex      sync.Mutex
	statistics broker.Statistics
	dialFailed error
	connected  bool
	unanswered int64
}

type pending struct {
	number uint64
	token  paho.Token
}

// Connect makes a client; QoS 1 and 2 keep their session while the connection is lost.
func (d *Driver) Connect(ctx context.Context, name string, events broker.Events) (broker.Connection, error) {
	made := &connection{driver: d, name: name, events: events, acks: make(chan pending, 1<<16)}
	made.statistics.Errors = map[string]int64{}
	made.client = paho.NewClient(made.options(d.QoS == 0))
	started := time.Now()
	token := made.client.Connect()
	select {
	case <-token.Done():
	case <-ctx.Done():
		made.client.Disconnect(0)
		return nil, context.Canceled
	}
	if err := token.Error(); err != nil {
		return nil, made.refusal(err)
	}
	made.mutex.Lock()
	made.statistics.Connect = time.Since(started) - made.statistics.TLS
	made.mutex.Unlock()
	made.done.Add(1)
	go made.awaitAcknowledgements()
	return made, nil
}

func (c *connection) options(clean bool) *paho.ClientOptions {
	options := paho.NewClientOptions()
	options.AddBroker("tcp://" + c.driver.Address)
	options.SetClientID(c.name).SetUsername(c.driver.Username).SetPassword(c.driver.Password)
	options.SetProtocolVersion(4).SetCleanSession(clean).SetKeepAlive(keepAlive)
	options.SetConnectTimeout(connectPatience).SetStore(paho.NewMemoryStore())
	options.SetAutoReconnect(true).SetMaxReconnectInterval(reconnectPause).SetResumeSubs(true)
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
}

// isConnected counts connections made anew, and the messages that are sent again on them.
func (c *connection) isConnected() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.connected {
		c.statistics.Reconnects++
		c.statistics.Resent += c.unanswered
	}
	c.connected = true
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
	plain, err := net.DialTimeout("tcp", c.driver.Address, connectPatience)
	if err != nil {
		return nil, err
	}
	tcp := plain.(*net.TCPConn) // Go sets TCP_NODELAY
	if c.driver.TLS == nil {
		return newConn(tcp, tcp, c.driver.Gathers, c.closed), nil
	}
	started := time.Now()
	secured := tls.Client(tcp, c.driver.TLS)
	limit, cancel := context.WithTimeout(context.Background(), connectPatience)
	defer cancel()
	if err := secured.HandshakeContext(limit); err != nil {
		tcp.Close()
		return nil, err
	}
	c.mutex.Lock()
	if !c.connected {
		c.statistics.TLS = time.Since(started)
	}
	c.mutex.Unlock()
	return newConn(secured, tcp, c.driver.Gathers, c.closed), nil
}

func (c *connection) closed(counters wire.Counters) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.statistics.Wire.Add(counters)
	c.live.Store(nil)
}

// Subscribe asks for the driver's QoS, and for no less.
func (c *connection) Subscribe(ctx context.Context, topic string, arrived func([]byte, time.Time)) error {
	token := c.client.Subscribe(topic, c.driver.QoS, func(_ paho.Client, message paho.Message) {
		arrived(message.Payload(), c.lastRead())
	})
	select {
	case <-token.Done():
	case <-ctx.Done():
		return context.Canceled
	case <-time.After(connectPatience):
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
		message := fmt.Sprintf("the broker grants QoS %d where %d is asked for: raise its limit, or take another delivery", granted, c.driver.QoS)
		return &contract.Failure{Reason: "LowerQosGranted", Message: message}
	}
	return nil
}

func (c *connection) lastRead() time.Time {
	if live := c.live.Load(); live != nil {
		return live.lastRead()
	}
	return time.Now()
}

// Publish hands a message to the client, which keeps it at QoS 1 and 2 until it is acknowledged.
func (c *connection) Publish(topic string, number uint64, message []byte) error {
	token := c.client.Publish(topic, c.driver.QoS, false, message)
	if c.driver.QoS > 0 {
		c.mutex.Lock()
		c.unanswered++
		c.mutex.Unlock()
		c.acks <- pending{number, token}
	}
	return nil
}

// awaitAcknowledgements takes tokens in the order in which messages were sent, which is that of their answers.
func (c *connection) awaitAcknowledgements() {
	defer c.done.Done()
	for sent := range c.acks {
		<-sent.token.Done()
		c.mutex.Lock()
		c.unanswered--
		c.mutex.Unlock()
		if sent.token.Error() == nil && c.events.Acknowledged != nil {
			c.events.Acknowledged(sent.number)
		}
	}
}

// Statistics so far, those of the connection that is open included.
func (c *connection) Statistics() broker.Statistics {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := c.statistics
	if live := c.live.Load(); live != nil {
		if counters, err := wire.Read(live.tcp); err == nil {
			now.Wire.Add(counters)
		}
	}
	return now
}

// Close ends the client, and the session that the broker keeps for it.
func (c *connection) Close() {
	c.client.Disconnect(disconnectGrace)
	close(c.acks)
	c.done.Wait()
	if c.driver.QoS == 0 {
		return
	}
	// A connection of its own: what it costs is not the trial's.
	cleaner := &connection{driver: c.driver, name: c.name, statistics: broker.Statistics{Errors: map[string]int64{}}}
	last := paho.NewClient(cleaner.options(true).SetAutoReconnect(false))
	if token := last.Connect(); token.WaitTimeout(connectPatience) && token.Error() == nil {
		last.Disconnect(disconnectGrace)
	}
}
