package engine

import (
	"context"
	"errors"
	"maps"
	"math"
	"net"
	"net/netip"
	"sync"
	"time"

	"tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/payload"
	"tierbench.io/client/internal/tcpinfo"
)

// What frees the window of a run.
const (
	byArrival         = "Arrival"
	byAcknowledgement = "Acknowledgement"
	byWrite           = "Write"
)

// connection is a connection of an engine to the broker.
type connection struct {
	process  *process
	number   uint16
	name     string
	events   broker.Events
	delivery string

	mutex      sync.Mutex
	statistics broker.Statistics // without those of the open connection
	up, closed bool
	begun, end uint64 // numbers of the run: the next one, and the first that is not part of it
	unsure     bool   // something that is not acknowledged may not have reached the broker
}

func (c *connection) request(do string) request { return request{Do: do, Connection: c.number} }

// connect makes the connection.
func (c *connection) connect(ctx context.Context, to *Broker, content *Content) error {
	asked := c.request("connect")
	asked.Name, asked.Broker, asked.Content = c.name, to, content
	asked.Receives = c.events.Arrived != nil || c.events.Corrupt != nil
	found, err := c.process.soon(ctx, asked)
	if err != nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.up = true
	c.statistics.Connect, c.statistics.TLS = time.Duration(found.Connect), time.Duration(found.TLS)
	c.statistics.Transport.Cipher = found.Cipher
	if local, err := netip.ParseAddrPort(found.Local); err == nil {
		c.statistics.Transport.Local = net.TCPAddrFromAddrPort(local)
	}
	return nil
}

// Subscribe passes arrivals to the connection's events, because the engine compares messages.
func (c *connection) Subscribe(ctx context.Context, topic string, _ func([]byte, time.Time)) error {
	return c.Echo(ctx, topic, "")
}

// Echo subscribes to a topic, and sends each message back unchanged.
func (c *connection) Echo(ctx context.Context, topic, back string) error {
	asked := c.request("subscribe")
	asked.Topic, asked.Echo = topic, back
	_, err := c.process.soon(ctx, asked)
	return err
}

// Prepare asks an engine that has to prepare for a topic.
func (c *connection) Prepare(ctx context.Context, topic string, _ bool) error {
	c.mutex.Lock()
	c.unsure = false
	c.mutex.Unlock()
	if !c.process.hello.Prepares {
		return nil
	}
	asked := c.request("prepare")
	asked.Topic = topic
	_, err := c.process.soon(ctx, asked)
	return err
}

// Publish lets the engine send a message of the content, or its first bytes. It does not wait for that.
func (c *connection) Publish(topic string, number uint64, message []byte) error {
	run := broker.Run{Topic: topic, First: number, Messages: 1, Bytes: len(message), Start: time.Now(), Window: 1}
	go func() { _, _ = c.Run(context.Background(), run) }()
	return c.Ended()
}

// Run sends messages.
func (c *connection) Run(ctx context.Context, run broker.Run) (int64, error) {
	asked := c.request("send")
	asked.Topic = run.Topic
	asked.course = &course{
		First: run.First, Messages: run.Messages, Bytes: run.Bytes, Start: c.process.stamp(run.Start), Interval: run.Interval.Nanoseconds(),
		Window: run.Window, Unacknowledged: run.Unacknowledged, Frees: byAcknowledgement,
	}
	if run.Messages == math.MaxInt64 {
		asked.Messages = 0
	}
	if !run.Until.IsZero() {
		asked.Until = c.process.stamp(run.Until)
	}
	if back, is := run.Back.(*connection); is {
		asked.Frees, asked.Back = byArrival, back.number
	} else if c.delivery == atMostOnce {
		asked.Frees = byWrite
	}
	c.mutex.Lock()
	c.begun, c.end = run.First, run.First+uint64(run.Messages)
	c.mutex.Unlock()
	found, err := c.process.ask(ctx, asked)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err == nil && uint64(found.Sent) != c.begun-run.First {
		failure := invalid("it says that it sent %d messages, and has reported %d", found.Sent, c.begun-run.First)
		c.process.fail(failure)
		return 0, failure
	}
	return found.Sent, err
}

// Release frees the window.
func (c *connection) Release() {
	_, _ = c.process.soon(context.Background(), c.request("release"))
}

// Confirm asks the engine whether all messages have arrived.
func (c *connection) Confirm(ctx context.Context) error {
	if _, err := c.process.ask(ctx, c.request("confirm")); err != nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.unsure {
		return errors.New("the connection broke off")
	}
	return nil
}

// Connected reports whether the connection is usable. A broken connection reconnects by itself.
func (c *connection) Connected() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.up && c.Ended() == nil
}

// Ended returns why the engine has ended.
func (c *connection) Ended() error {
	select {
	case <-c.process.ended:
		return c.process.failure
	default:
		return nil
	}
}

// Statistics asks the engine for what it counts.
func (c *connection) Statistics() broker.Statistics {
	c.mutex.Lock()
	asks := !c.closed
	c.mutex.Unlock()
	if !asks {
		return c.counted(answer{})
	}
	found, err := c.process.soon(context.Background(), c.request("count"))
	if err != nil {
		found = answer{}
	}
	return c.counted(found)
}

// counted returns the statistics with those of the open connection.
func (c *connection) counted(found answer) broker.Statistics {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := c.statistics
	now.Errors = maps.Clone(now.Errors)
	for _, structure := range append(found.Others, found.TCPInfo) {
		now.Wire.Add(c.wire(structure))
	}
	if spent := found.spent(); spent != (payload.Spent{}) {
		now.Spent = spent
	}
	return now
}

func (a *answer) spent() payload.Spent {
	return payload.Spent{
		Compress: time.Duration(a.Compress), Encrypt: time.Duration(a.Encrypt), Decrypt: time.Duration(a.Decrypt), Decompress: time.Duration(a.Decompress),
	}
}

func (c *connection) wire(structure []byte) tcpinfo.Counters {
	if len(structure) == 0 {
		return tcpinfo.Counters{}
	}
	return tcpinfo.Parse(structure, c.statistics.Transport.Local) // of the same family as the other side
}

// Close ends the connection, and keeps what it counted.
func (c *connection) Close() {
	found, err := c.process.soon(context.Background(), c.request("close"))
	c.process.remove(c)
	if err != nil {
		found = answer{}
	}
	final := c.counted(found)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.statistics, c.closed, c.up = final, true, false
}

// happened forwards an event.
func (c *connection) happened(one event, at time.Time) error {
	switch one.kind {
	case sent:
		return c.sends(one, at)
	case acknowledged:
		if c.events.Acknowledged != nil {
			c.events.Acknowledged(one.number, at)
		}
	case arrived:
		if c.events.Arrived != nil {
			c.events.Arrived(one.number, at)
		}
	case corrupt:
		if c.events.Corrupt != nil {
			c.events.Corrupt(at)
		}
	default:
		return invalid("there is no event of kind %d", one.kind)
	}
	return nil
}

func (c *connection) sends(one event, at time.Time) error {
	c.mutex.Lock()
	expected, end := c.begun, c.end
	if one.number == expected && expected < end {
		c.begun++
	}
	c.mutex.Unlock()
	if one.number != expected || expected >= end {
		return invalid("it sent message %d on connection %d, where message %d is next and %d the last", one.number, c.number, expected, end-1)
	}
	if c.events.Sent != nil {
		c.events.Sent(one.number, int(one.bytes), at)
	}
	return nil
}

// goesDown counts a broken connection, with the counters of its socket.
func (c *connection) goesDown(structure []byte) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.up {
		return invalid("connection %d is down twice", c.number)
	}
	if c.statistics.Errors == nil {
		c.statistics.Errors = map[string]int64{}
	}
	c.statistics.Errors[contract.Disconnected]++
	c.statistics.Wire.Add(c.wire(structure))
	c.up, c.unsure = false, true
	return nil
}

// comesUp counts a reconnect.
func (c *connection) comesUp(resent int64) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.up || resent < 0 {
		return invalid("connection %d is up twice, or resent %d messages", c.number, resent)
	}
	c.statistics.Reconnects++
	c.statistics.Resent += resent
	c.up = true
	return nil
}
