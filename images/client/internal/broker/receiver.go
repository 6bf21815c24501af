package broker

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"

	"tierbench.io/client/internal/payload"
)

// shareOf is the prefix of shared subscriptions. Only MQTT has them.
const shareOf = "$share/tierbench/"

// receiver is a subscriber of a pair.
type receiver struct {
	*pair
	place   int // among the subscribers of the pair
	decoder *payload.Codec
}

func (r *receiver) subscribe(ctx context.Context, name string) error {
	back := r.topic
	if r.options.Role == Publisher {
		back += "/echo"
	}
	if r.options.Shared {
		back = shareOf + back
	}
	subscriber, err := r.open(ctx, named(name, "s", r.place), Events{Arrived: r.checked, Corrupt: r.corrupt})
	if err != nil {
		return err
	}
	return subscriber.Subscribe(ctx, back, r.arrived)
}

func (r *receiver) arrived(message []byte, at time.Time) {
	if !r.accepts() {
		return
	}
	defer r.gate.RUnlock()
	plain, err := r.decoder.Decode(message)
	if err == nil && r.isValid(plain) {
		if from := r.origin(plain); from != nil {
			from.ledger.arrive(plain, r.place, at)
			return
		}
	}
	r.miscount()
}

// isValid reports whether a message has the content of its number.
func (p *pair) isValid(plain []byte) bool {
	wanted := p.options.Content.Content(0)
	if len(plain) <= numberBytes {
		return len(plain) == len(wanted)
	}
	wanted = p.options.Content.Content(binary.BigEndian.Uint64(plain))
	return len(plain) == len(wanted) && bytes.Equal(plain[numberBytes:], wanted[numberBytes:])
}

// origin returns the publisher of a valid message, or nil if its number has the place of none.
func (p *pair) origin(plain []byte) *sender {
	if len(p.senders) == 1 {
		return p.senders[0] // its messages may be too short for a place
	}
	place := binary.BigEndian.Uint64(plain) >> publisherShift
	if place >= uint64(len(p.senders)) {
		return nil
	}
	return p.senders[place]
}

// miscount counts a message that no publisher of the topic sent.
func (p *pair) miscount() { p.senders[0].ledger.corrupt() }

// echo decodes every message, as a consumer would, and returns the same bytes.
func (p *pair) echo(ctx context.Context, name string) error {
	connection, err := p.open(ctx, name+"-e", Events{Corrupt: p.corrupt})
	if err != nil {
		return err
	}
	if remote, is := connection.(Remote); is {
		return remote.Echo(ctx, p.topic, p.topic+"/echo")
	}
	if err := connection.Prepare(ctx, p.topic+"/echo", false); err != nil {
		return err
	}
	var number uint64
	return connection.Subscribe(ctx, p.topic, func(message []byte, _ time.Time) {
		if !p.decode(message) {
			return
		}
		number++
		_ = connection.Publish(p.topic+"/echo", number, bytes.Clone(message))
	})
}

// decode reports whether a message of a trial can be decoded.
func (p *pair) decode(message []byte) bool {
	if !p.accepts() {
		return false
	}
	defer p.gate.RUnlock()
	_, err := p.receivers[0].decoder.Decode(message)
	if err != nil {
		p.miscount()
	}
	return err == nil
}
