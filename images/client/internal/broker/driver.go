// Package broker makes the load of publishers and subscribers, trial after trial, and counts messages. A Driver implements
// the protocol of the broker.
package broker

import (
	"context"
	"net"
	"time"

	"tierbench.io/client/internal/payload"
	"tierbench.io/client/internal/tcpinfo"
)

// Driver makes connections to one broker.
type Driver interface {
	// Connect makes a new connection. Its error is a *contract.Failure if a retry cannot succeed.
	Connect(ctx context.Context, name string, events Events) (Connection, error)
}

// Messenger is a driver whose publishers can connect for each message.
type Messenger interface {
	// EachMessage returns a publisher that makes a connection when it publishes a message, and ends it before Publish returns.
	EachMessage(name string, events Events) Connection
}

// Events are callbacks of a connection. Each is called by one goroutine of the connection at a time.
type Events struct {
	Acknowledged func(number uint64, at time.Time) // the broker has accepted a message
	Refused      func(number uint64, why Refusal)  // the broker has refused a message

	// Callbacks for an engine, which numbers and compares messages itself. A number that does not fit into a message is
	// cut.
	Sent    func(number uint64, encoded int, at time.Time) // it starts to send a message, which has this many encoded bytes
	Arrived func(number uint64, at time.Time)              // a message came back unchanged
	Corrupt func(at time.Time)                             // something else arrived
}

// Connection is the connection of one publisher or subscriber.
type Connection interface {
	// Subscribe returns when the broker has confirmed. A message is valid until arrived returns. `at` is the time at which
	// an application would receive it.
	Subscribe(ctx context.Context, topic string, arrived func(message []byte, at time.Time)) error
	// Prepare returns when messages to a topic can be sent without further requests. If alone is true, the topic has no
	// subscribers, and is deleted with this connection.
	Prepare(ctx context.Context, topic string, alone bool) error
	// Publish sends a message. The caller must not change the message until it has returned or counts as lost.
	Publish(topic string, number uint64, message []byte) error
	// Confirm returns when the broker has received all messages since Prepare, for a delivery without acknowledgements. An
	// error means that this is unknown.
	Confirm(ctx context.Context) error
	// Connected reports whether the connection is usable. A broken connection reconnects by itself.
	Connected() bool
	// Statistics returns a copy.
	Statistics() Statistics
	Close()
}

// Statistics are the statistics of a connection so far.
type Statistics struct {
	Connect    time.Duration // without the TLS handshake
	TLS        time.Duration
	Handshakes Handshakes
	Reconnects int64
	Resent     int64 // messages
	Batches    int64 // of messages that the broker took together
	BatchBytes int64 // of all batches
	Errors     map[string]int64
	Wire       tcpinfo.Counters
	Transport  Transport
	Spent      payload.Spent // by an engine

	// For a publisher that connects for each message. Connect and TLS are then sums.
	Connections int64            // 0: this is one connection
	Setup       tcpinfo.Counters // until each was ready for its message
}

// Handshakes count those of TLS, and those that resumed an earlier session.
type Handshakes struct{ All, Resumed int64 }

// Count adds a connection.
func (h *Handshakes) Count(secured, resumed bool) {
	if secured {
		h.All++
	}
	if resumed {
		h.Resumed++
	}
}

// since returns the difference to earlier statistics of the same connection. The values of its setup stay.
func (s Statistics) since(earlier Statistics) Statistics {
	s.Handshakes.All -= earlier.Handshakes.All
	s.Handshakes.Resumed -= earlier.Handshakes.Resumed
	s.Reconnects -= earlier.Reconnects
	s.Resent -= earlier.Resent
	s.Batches -= earlier.Batches
	s.BatchBytes -= earlier.BatchBytes
	s.Wire = s.Wire.Since(earlier.Wire)
	s.Spent = s.Spent.Since(earlier.Spent)
	errors := map[string]int64{}
	for cause, number := range s.Errors {
		errors[cause] = number - earlier.Errors[cause]
	}
	s.Errors = errors
	return s
}

// Transport describes what a connection uses below the protocol of the broker.
type Transport struct {
	Local      net.Addr
	Congestion string // the algorithm
	Cipher     string // of TLS; empty without
}
