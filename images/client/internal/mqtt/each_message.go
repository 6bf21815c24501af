package mqtt

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/tcpinfo"
	"tierbench.io/client/internal/transport"
	"tierbench.io/client/internal/wait"
)

// eachMessage is a publisher that connects for each message, like a device that sleeps in between: it connects,
// publishes, waits for the acknowledgement of its QoS, and disconnects. A session does not outlive its connection.
type eachMessage struct {
	link
	events broker.Events
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	fails  atomic.Bool // the last attempt failed

	// The mutex of link guards these.
	connections          int64
	connects, handshakes time.Duration // of all connections
	setup                tcpinfo.Counters
}

// visit is a connection for one message. Packets follow each other.
type visit interface {
	greet(name string) error
	// publish returns when the broker has acknowledged a message, or without acknowledgements when it is written.
	publish(topic string, message []byte) error
	leave() error
}

var errRefused = errors.New("the broker refuses the message")

// EachMessage returns a publisher that connects for each message.
func (d *Driver) EachMessage(name string, events broker.Events) broker.Connection {
	sole := *d
	sole.Gathers = false
	made := &eachMessage{link: link{driver: &sole, name: name, statistics: noStatistics()}, events: events}
	made.ctx, made.cancel = context.WithCancel(context.Background())
	return made
}

// Subscribe fails: a device that sleeps receives nothing.
func (e *eachMessage) Subscribe(context.Context, string, func([]byte, time.Time)) error {
	return errors.New("a connection for each message has no subscriptions")
}

// Publish returns when the connection of the message has ended. It tries again for the timeout, unless the broker may have a
// message that it does not acknowledge.
func (e *eachMessage) Publish(topic string, number uint64, message []byte) error {
	deadline := time.Now().Add(e.driver.Timeout)
	for again := false; ; again = true {
		published, err := e.attempt(topic, number, message)
		var failure *contract.Failure
		switch {
		case err == nil:
			e.fails.Store(false)
			if again {
				e.mutex.Lock()
				e.statistics.Reconnects++
				e.mutex.Unlock()
			}
			return nil
		case errors.As(err, &failure):
			return failure
		case errors.Is(err, errRefused):
			e.count(contract.Refused)
			return nil
		case e.ctx.Err() != nil:
			return e.ctx.Err()
		}
		e.fails.Store(true)
		e.count(contract.Disconnected)
		if published && e.driver.QoS == 0 || time.Now().After(deadline) {
			return nil // it may be lost
		}
		if published {
			e.mutex.Lock()
			e.statistics.Resent++
			e.mutex.Unlock()
		}
		_ = wait.For(e.ctx, reconnectPause)
	}
}

// attempt makes a connection for a message. It reports whether the broker may have received the message.
func (e *eachMessage) attempt(topic string, number uint64, message []byte) (published bool, err error) {
	started := time.Now()
	over, err := e.open(e.ctx)
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		hint := "all ports of this client are in use, because each holds a closed connection for a minute: send fewer messages"
		return false, transport.Failure("PortsExhausted", hint, err)
	}
	if err != nil {
		return false, e.refusal(err)
	}
	stop := context.AfterFunc(e.ctx, func() { over.Close() })
	defer stop()
	with := e.driver.visit(over)
	if err := with.greet(e.name); err != nil {
		over.Close()
		return false, e.refusal(err)
	}
	e.isReady(over, time.Since(started))
	_ = over.SetReadDeadline(time.Now().Add(e.driver.Timeout))
	if err := with.publish(topic, message); err != nil {
		over.Close()
		return true, err
	}
	if e.driver.QoS > 0 && e.events.Acknowledged != nil {
		e.events.Acknowledged(number, time.Now())
	}
	if errors.Join(with.leave(), over.hangUp()) != nil && e.driver.QoS == 0 {
		e.doubt()
	}
	return true, nil
}

func (d *Driver) visit(over *conn) visit {
	if d.Version == Version5 {
		return &visit5{d, over}
	}
	return &visit3{d, over}
}

// isReady counts the costs of connecting.
func (e *eachMessage) isReady(over *conn, took time.Duration) {
	counters, _ := tcpinfo.Read(over.over.TCP)
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.connections++
	e.connects += took - over.over.Handshake
	e.handshakes += over.over.Handshake
	e.setup.Add(counters)
}

// Confirm reports whether the broker has received all messages. It has received those of a connection that it has ended.
func (e *eachMessage) Confirm(context.Context) error { return e.isSure() }

// Connected reports whether the last message could be sent.
func (e *eachMessage) Connected() bool { return !e.fails.Load() }

// Statistics returns the statistics of all connections so far.
func (e *eachMessage) Statistics() broker.Statistics {
	now := e.link.Statistics()
	e.mutex.Lock()
	defer e.mutex.Unlock()
	now.Connections, now.Connect, now.TLS, now.Setup = e.connections, e.connects, e.handshakes, e.setup
	return now
}

// Close ends the connection of a message that is being sent.
func (e *eachMessage) Close() { e.cancel() }

// unexpected is why a visit fails whose broker does not answer as it should.
func unexpected(packet any) error { return fmt.Errorf("the broker answers by %v", packet) }
