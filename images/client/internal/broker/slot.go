package broker

import (
	"encoding/binary"
	"math/bits"
	"time"

	"tierbench.io/client/internal/payload"
)

const numberBytes = payload.NumberBytes

// publisherShift is the position of the publisher's place, in its group, in the number of a message. Fewer messages are
// sent than the bits below can count.
const publisherShift = 56

// audience describes who receives the messages of a publisher: each subscriber, or one of them if they share the
// messages.
type audience struct {
	subscribers int // 0: none
	shared      bool
}

// deliveries returns how often a message should arrive.
func (a audience) deliveries() int {
	if a.shared {
		return min(a.subscribers, 1)
	}
	return a.subscribers
}

type state uint8

const (
	free state = iota
	pending
	done
	givenUp
)

// slot is the state of one message.
type slot struct {
	number           uint64
	arrived          uint64        // a bit for each subscriber that has it: at most 64
	intended, actual time.Duration // since the ledger's start
	state            state
	acknowledged     bool
	unacknowledged   bool // whether another message waits for its acknowledgement
	buffer           []byte
}

func (s *slot) hasArrivedAt(subscriber int) bool { return s.arrived&(1<<subscriber) != 0 }

// missing returns how many deliveries of a message are outstanding.
func (l *ledger) missing(one *slot) int { return l.deliveries - bits.OnesCount64(one.arrived) }

// settle counts a slot before its reuse, or at the end. The connection may still read the buffer of a lost message.
func (l *ledger) settle(one *slot) {
	if one.acknowledged && one.state != done && !l.alone {
		l.counts.AcknowledgedLost += int64(l.missing(one))
	}
	if one.state == givenUp {
		one.buffer = nil
	}
	one.acknowledged = false
}

// write writes the number of a message into its first bytes.
func (l *ledger) write(number uint64, message []byte) {
	var bytes [numberBytes]byte
	binary.BigEndian.PutUint64(bytes[:], number)
	copy(message, bytes[numberBytes-l.width:])
}

// read returns the number of a message: the number of the newest sent message whose first bytes are the same.
func (l *ledger) read(message []byte) uint64 {
	var bytes [numberBytes]byte
	copy(bytes[numberBytes-l.width:], message[:l.width])
	return l.whole(binary.BigEndian.Uint64(bytes[:]))
}

// whole returns the number of the newest sent message that ends with the bits that fit into a message.
func (l *ledger) whole(low uint64) uint64 {
	if l.width == numberBytes || l.next == 0 {
		return low
	}
	mask := uint64(1)<<(8*l.width) - 1
	return l.next - 1 - (l.next-1-low)&mask
}
