package mqtt

import (
	"errors"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/eclipse/paho.golang/packets"
)

const mostIdentifiers = 65000 // of messages. Requests have those above

// outbox keeps messages of QoS 1 and 2 in MQTT 5 until the broker has answered them. It sends no more at a time than
// the broker accepts, and resends on a new connection what is not answered, as clients of MQTT 3.1.1 do, whether or not
// the broker still has the session.
type outbox struct {
	sending sync.Mutex // keeps packets in the order of their messages

	mutex   sync.Mutex
	pending map[uint16]*letter // by identifier
	waiting []*letter          // those to send, in order
	last    uint16             // identifier
	places  uint64
	to      io.Writer // nil while there is no connection
	room    int       // for letters
	resumed bool      // the broker has the session of the last connection
	resent  int64
}

// letter is a message without an answer.
type letter struct {
	place, number uint64
	packet        *packets.Publish
	sent          bool // once
	received      bool // by the broker, which waits for PUBREL
}

var errFull = errors.New("too many messages are not acknowledged")

// post takes a message, and sends it when the broker has room for it.
func (o *outbox) post(number uint64, packet *packets.Publish) error {
	o.sending.Lock()
	defer o.sending.Unlock()
	if err := o.add(number, packet); err != nil {
		return err
	}
	o.flush()
	return nil
}

func (o *outbox) add(number uint64, packet *packets.Publish) error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if len(o.pending) == mostIdentifiers {
		return errFull
	}
	for o.last++; o.last > mostIdentifiers || o.last == 0 || o.pending[o.last] != nil; o.last++ {
	}
	packet.PacketID = o.last
	o.places++
	one := &letter{place: o.places, number: number, packet: packet}
	o.pending[o.last] = one
	o.waiting = append(o.waiting, one)
	return nil
}

// flush sends what waits, as far as the broker has room. A write that fails ends the connection elsewhere. The caller holds
// sending.
func (o *outbox) flush() {
	for {
		one, to := o.next()
		switch {
		case one == nil:
			return
		case one.received:
			_ = acknowledge(to, packets.PUBREL, pubrelFlags, one.packet.PacketID)
		default:
			_ = write(to, one.packet)
		}
	}
}

func (o *outbox) next() (*letter, io.Writer) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.to == nil || o.room <= 0 || len(o.waiting) == 0 {
		return nil, nil
	}
	one := o.waiting[0]
	o.waiting = o.waiting[1:]
	o.room--
	if one.sent && !one.received {
		o.resent++
		one.packet.Duplicate = o.resumed
	}
	one.sent = true
	return one, o.to
}

// connect sends on a new connection what the broker has not answered.
func (o *outbox) connect(to io.Writer, room int, resumed bool) {
	o.sending.Lock()
	defer o.sending.Unlock()
	o.mutex.Lock()
	o.to, o.room, o.resumed = to, room, resumed
	o.waiting = slices.SortedFunc(maps.Values(o.pending), func(a, b *letter) int { return int(a.place) - int(b.place) })
	o.mutex.Unlock()
	o.flush()
}

func (o *outbox) disconnect() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.to = nil
}

// release notes that the broker has received a message of QoS 2.
func (o *outbox) release(identifier uint16) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if one := o.pending[identifier]; one != nil {
		one.received = true
	}
}

// end forgets a message that the broker has answered, and returns its number.
func (o *outbox) end(identifier uint16) (number uint64, known bool) {
	o.mutex.Lock()
	one := o.pending[identifier]
	if one == nil || !one.sent {
		o.mutex.Unlock()
		return 0, false
	}
	delete(o.pending, identifier)
	o.room++
	waits := len(o.waiting) > 0
	o.mutex.Unlock()
	if waits {
		o.sending.Lock()
		defer o.sending.Unlock()
		o.flush()
	}
	return one.number, true
}

func (o *outbox) countResent() int64 {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.resent
}
