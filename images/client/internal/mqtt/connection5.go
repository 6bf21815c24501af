package mqtt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/wait"
)

// connection5 is one client of a broker in MQTT 5. It uses the packets of Paho's client for this version, and not the client
// itself, which writes a packet in pieces, begins each connection with a ping, and keeps 512 KiB for each.
type connection5 struct {
	link
	events     broker.Events
	ctx        context.Context // ends with Close
	cancel     context.CancelFunc
	ended      chan struct{} // nothing is read any more
	outbox     outbox
	unreleased map[uint16]struct{} // messages of QoS 2 that have arrived, and that the broker may send again

	// The mutex of link guards these.
	up      *conn // accepted by the broker
	topic   string
	arrived func([]byte, time.Time)
	asked   uint16 // identifier of the last request
	answers chan answer
}

// answer is the answer to a SUBSCRIBE or UNSUBSCRIBE. `reason` is negative if the connection broke before.
type answer struct {
	request uint16
	reason  int
}

// connect5 creates a client. With QoS 1 and 2 its session outlives a broken connection.
func (d *Driver) connect5(ctx context.Context, name string, events broker.Events) (broker.Connection, error) {
	made := &connection5{
		link: link{driver: d, name: name, statistics: noStatistics()}, events: events, ended: make(chan struct{}),
		outbox: outbox{pending: map[uint16]*letter{}}, unreleased: map[uint16]struct{}{}, asked: mostIdentifiers, answers: make(chan answer, 1),
	}
	made.ctx, made.cancel = context.WithCancel(context.Background())
	started := time.Now()
	over, agreed, err := made.join(ctx)
	if err != nil {
		made.cancel()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s does not answer: %w", d.Address, ctx.Err())
		}
		return nil, made.refusal(err)
	}
	made.mutex.Lock()
	made.connected = true
	made.statistics.Connect = time.Since(started) - made.statistics.TLS
	made.mutex.Unlock()
	made.begin(over, agreed)
	go made.run(over, agreed)
	return made, nil
}

// join connects, and returns when the broker has agreed.
func (c *connection5) join(ctx context.Context) (*conn, *packets.Connack, error) {
	over, err := c.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { over.Close() })
	agreed, err := c.driver.greet(over, c.driver.hello(c.name, c.driver.QoS > 0))
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		over.Close()
		return nil, nil, err
	}
	return over, agreed, nil
}

// begin uses a connection that the broker has agreed to.
func (c *connection5) begin(over *conn, agreed *packets.Connack) {
	if !agreed.SessionPresent {
		clear(c.unreleased)
	}
	c.mutex.Lock()
	c.up = over
	c.mutex.Unlock()
	c.outbox.connect(over, room(agreed), agreed.SessionPresent)
}

// run reads until Close, and connects again when the connection breaks.
func (c *connection5) run(over *conn, agreed *packets.Connack) {
	defer close(c.ended)
	for {
		stop := c.ping(over, alive(agreed))
		_ = c.read(over)
		stop()
		c.outbox.disconnect()
		c.mutex.Lock()
		c.up = nil
		c.mutex.Unlock()
		over.Close()
		c.answer(0, -1)
		if c.ctx.Err() != nil {
			return
		}
		c.count(contract.Disconnected)
		if over, agreed = c.rejoin(); over == nil {
			return
		}
	}
}

// rejoin connects again, and subscribes again, because the broker may have lost the session. It returns nil after Close.
func (c *connection5) rejoin() (*conn, *packets.Connack) {
	for c.ctx.Err() == nil {
		over, agreed, err := c.join(c.ctx)
		if err != nil {
			_ = wait.For(c.ctx, reconnectPause)
			continue
		}
		c.mutex.Lock()
		c.statistics.Reconnects++
		topic := c.topic
		c.mutex.Unlock()
		if topic != "" {
			_ = write(over, c.subscription(topic, math.MaxUint16))
		}
		c.begin(over, agreed)
		if c.ctx.Err() == nil {
			return over, agreed
		}
		over.Close()
	}
	return nil, nil
}

// ping keeps a connection alive that nothing is written to.
func (c *connection5) ping(over *conn, longest time.Duration) (stop func()) {
	if longest == 0 {
		return func() {}
	}
	ticker, done := time.NewTicker(longest/2), make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			if !over.wrote.Swap(false) {
				_, _ = over.Write([]byte{packets.PINGREQ << 4, 0})
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
	}
}

func (c *connection5) read(over *conn) error {
	for {
		read, err := packets.ReadPacket(over)
		if err != nil {
			return err
		}
		if err := c.take(over, read, time.Now()); err != nil {
			return err
		}
	}
}

func (c *connection5) take(over io.Writer, read *packets.ControlPacket, now time.Time) error {
	switch packet := read.Content.(type) {
	case *packets.Publish:
		return c.receive(over, packet, now)
	case *packets.Pubrel:
		delete(c.unreleased, packet.PacketID)
		return acknowledge(over, packets.PUBCOMP, 0, packet.PacketID)
	case *packets.Puback:
		c.settle(packet.PacketID, packet.ReasonCode, now)
	case *packets.Pubcomp:
		c.settle(packet.PacketID, packet.ReasonCode, now)
	case *packets.Pubrec:
		if packet.ReasonCode >= failing {
			c.settle(packet.PacketID, packet.ReasonCode, now)
			return nil
		}
		c.outbox.release(packet.PacketID)
		return acknowledge(over, packets.PUBREL, pubrelFlags, packet.PacketID)
	case *packets.Suback:
		c.answer(packet.PacketID, first(packet.Reasons))
	case *packets.Unsuback:
		c.answer(packet.PacketID, first(packet.Reasons))
	case *packets.Disconnect:
		return fmt.Errorf("the broker disconnects: %s", packet.Reason())
	}
	return nil
}

func first(reasons []byte) int {
	if len(reasons) == 0 {
		return failing
	}
	return int(reasons[0])
}

func (c *connection5) receive(over io.Writer, message *packets.Publish, now time.Time) error {
	known := false
	if message.QoS == 2 {
		_, known = c.unreleased[message.PacketID]
		c.unreleased[message.PacketID] = struct{}{}
	}
	c.mutex.Lock()
	arrived := c.arrived
	c.mutex.Unlock()
	if !known && arrived != nil {
		arrived(message.Payload, now)
	}
	switch message.QoS {
	case 1:
		return acknowledge(over, packets.PUBACK, 0, message.PacketID)
	case 2:
		return acknowledge(over, packets.PUBREC, 0, message.PacketID)
	}
	return nil
}

// settle ends a message that the broker has taken or refused.
func (c *connection5) settle(identifier uint16, reason byte, now time.Time) {
	number, known := c.outbox.end(identifier)
	switch {
	case !known:
	case reason >= failing:
		c.count(contract.Refused)
	case c.events.Acknowledged != nil:
		c.events.Acknowledged(number, now)
	}
}

// answer forwards an answer. It replaces one that no request waits for.
func (c *connection5) answer(request uint16, reason int) {
	c.forget()
	c.answers <- answer{request, reason}
}

func (c *connection5) forget() {
	select {
	case <-c.answers:
	default:
	}
}

func (c *connection5) subscription(topic string, identifier uint16) *packets.Subscribe {
	return &packets.Subscribe{PacketID: identifier, Subscriptions: []packets.SubOptions{{Topic: topic, QoS: c.driver.QoS}}}
}

// Subscribe requests the driver's QoS, and fails if the broker grants a lower one.
func (c *connection5) Subscribe(ctx context.Context, topic string, arrived func([]byte, time.Time)) error {
	c.mutex.Lock()
	c.topic, c.arrived = topic, arrived
	c.mutex.Unlock()
	limit, cancel := context.WithTimeoutCause(ctx, connectTimeout, unanswered)
	defer cancel()
	granted, err := c.ask(limit, func(identifier uint16) io.WriterTo { return c.subscription(topic, identifier) })
	switch {
	case ctx.Err() != nil:
		return context.Canceled
	case err != nil:
		return err
	}
	return c.driver.isGranted(topic, granted)
}

// ask sends a request, and returns the reason code of its answer. There is one request at a time.
func (c *connection5) ask(ctx context.Context, request func(identifier uint16) io.WriterTo) (byte, error) {
	c.mutex.Lock()
	up := c.up
	if c.asked++; c.asked == math.MaxUint16 { // which is reserved for resubscribing
		c.asked = mostIdentifiers + 1
	}
	identifier := c.asked
	c.mutex.Unlock()
	if up == nil {
		return 0, errBroken
	}
	c.forget()
	if err := write(up, request(identifier)); err != nil {
		return 0, err
	}
	for {
		select {
		case found := <-c.answers:
			if found.reason < 0 {
				return 0, errBroken
			}
			if found.request == identifier {
				return byte(found.reason), nil
			}
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

var errBroken = errors.New("the connection broke off")

// Publish sends a message. At QoS 1 and 2 it is kept until the broker has answered it.
func (c *connection5) Publish(topic string, number uint64, message []byte) error {
	packet := &packets.Publish{Topic: topic, QoS: c.driver.QoS, Payload: message}
	if c.driver.QoS > 0 {
		if c.outbox.post(number, packet) != nil {
			c.doubt()
		}
		return nil
	}
	if up := c.usable(); up == nil || write(up, packet) != nil {
		c.doubt()
	}
	return nil
}

func (l *link) doubt() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.unsure = true
}

func (c *connection5) usable() *conn {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.up
}

// Confirm ends a subscription, which need not exist. The broker answers in order, so the answer comes after all messages.
func (c *connection5) Confirm(ctx context.Context) error {
	_, err := c.ask(ctx, func(identifier uint16) io.WriterTo {
		return &packets.Unsubscribe{PacketID: identifier, Topics: []string{c.name}}
	})
	return errors.Join(c.isSure(), err)
}

// Connected reports whether the connection is usable.
func (c *connection5) Connected() bool { return c.usable() != nil }

// Statistics returns the statistics so far, including those of the open connection.
func (c *connection5) Statistics() broker.Statistics {
	now := c.link.Statistics()
	now.Resent = c.outbox.countResent()
	return now
}

// Close ends the client, and the session that the broker keeps for it.
func (c *connection5) Close() {
	c.cancel()
	if up := c.usable(); up != nil {
		_ = up.Conn.SetWriteDeadline(time.Now().Add(lastWrite))
		_ = leave(up, c.driver.QoS > 0)
		select { // Until the broker ends the connection: with unread bytes, ours would end by a reset, and the session would stay.
		case <-c.ended:
		case <-time.After(lastWrite):
		}
		up.Close()
	}
	<-c.ended
}
