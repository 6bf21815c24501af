// Package broker makes the load of publishers and subscribers, trial after trial, and counts what becomes of it. How a broker
// is spoken to is a Driver's.
package broker

import (
	"context"
	"net"
	"time"

	"tierbench.io/client/internal/tcpinfo"
)

// Driver speaks with one broker.
type Driver interface {
	// Connect makes a connection of its own. Its error is a *contract.Failure if a second try cannot mend it.
	Connect(ctx context.Context, name string, events Events) (Connection, error)
}

// Events are what a connection tells while it is used. They come from goroutines of its own, one at a time each.
type Events struct {
	Acknowledged func(number uint64) // the broker has taken a message
}

// Connection is one publisher's or subscriber's.
type Connection interface {
	// Subscribe returns once the broker has agreed; messages are valid until arrived returns. They came at `at`:
	// when they are given on, as an application would have them.
	Subscribe(ctx context.Context, topic string, arrived func(message []byte, at time.Time)) error
	// Prepare returns once messages to a topic can leave without any more ado. A topic that nobody reads, alone, ends with
	// this connection.
	Prepare(ctx context.Context, topic string, alone bool) error
	// Publish hands a message over. It must not be changed before it has come back, or been given up.
	Publish(topic string, number uint64, message []byte) error
	// Confirm returns once the broker has taken everything that was published since Prepare, of a delivery without
	// acknowledgements. Its error says that nobody can know.
	Confirm(ctx context.Context) error
	// Connected says whether the connection is usable at present; one that broke off is made anew meanwhile.
	Connected() bool
	// Statistics are the caller's own.
	Statistics() Statistics
	Close()
}

// Statistics of a connection so far.
type Statistics struct {
	Connect    time.Duration // the TLS handshake left out
	TLS        time.Duration
	Reconnects int64
	Resent     int64 // messages
	Batches    int64 // of messages that the broker took together
	BatchBytes int64 // of all batches
	Errors     map[string]int64
	Wire       tcpinfo.Counters
	Transport  Transport
}

// since is what came after earlier ones of the same connection; how it was made stays.
func (s Statistics) since(earlier Statistics) Statistics {
	s.Reconnects -= earlier.Reconnects
	s.Resent -= earlier.Resent
	s.Batches -= earlier.Batches
	s.BatchBytes -= earlier.BatchBytes
	s.Wire = s.Wire.Since(earlier.Wire)
	errors := map[string]int64{}
	for cause, number := range s.Errors {
		errors[cause] = number - earlier.Errors[cause]
	}
	s.Errors = errors
	return s
}

// Transport is what a connection goes over.
type Transport struct {
	Local      net.Addr
	Congestion string // the algorithm
	Cipher     string // of TLS; empty without
}
