package broker

import (
	"context"
	"time"

	"tierbench.io/client/internal/wait"
)

const reconnectPause = 10 * time.Millisecond

// counted is a connection with the statistics of the current trial.
type counted struct {
	Connection
	before Statistics // of earlier trials
}

func (c *counted) Statistics() Statistics { return c.Connection.Statistics().since(c.before) }

// open returns the pairs of a trial, kept or new ones, and whether they are new.
func (t *Target) open(ctx context.Context, name string, started time.Time) (pairs []*pair, fresh bool, err error) {
	if t.kept == nil {
		pairs, err = connectAll(ctx, t.Options, name, t.first, started)
		return pairs, true, err
	}
	return t.kept, false, each(t.kept, func(one *pair) error { return one.reset(ctx, t.first, started) })
}

// finish ends the exchange of a trial, before its tallies are read.
func (t *Target) finish(ctx context.Context, pairs []*pair) {
	if !t.Options.Keeps {
		closeAll(ctx, pairs)
		return
	}
	for _, one := range pairs {
		if one != nil {
			one.pause()
		}
	}
}

// leave keeps the pairs of a good trial if connections are kept. The numbers of messages continue in the next trial.
func (t *Target) leave(ctx context.Context, pairs []*pair, good bool) {
	t.kept = nil
	if !t.Options.Keeps {
		closeAll(ctx, pairs)
		return
	}
	for _, one := range pairs {
		if one != nil {
			t.first = max(t.first, t.Options.Content.Next(one.upcoming()))
		}
	}
	if !good {
		closeAll(ctx, pairs)
		return
	}
	for _, one := range pairs {
		one.snapshot()
	}
	t.kept = pairs
}

// Close closes the kept pairs.
func (t *Target) Close(ctx context.Context) {
	closeAll(ctx, t.kept)
	t.kept = nil
}

// pause ignores all messages until the next trial.
func (p *pair) pause() {
	p.gate.Lock()
	defer p.gate.Unlock()
	p.shut = true
}

// snapshot ends a trial. Later statistics of its connections count for the next trial.
func (p *pair) snapshot() {
	for _, one := range p.connections {
		one.before = one.Connection.Statistics()
	}
}

// reset begins a trial with the connections of an earlier trial, when all of them are connected.
func (p *pair) reset(ctx context.Context, first uint64, start time.Time) error {
	for _, one := range p.connections {
		one.before.Wire = one.Connection.Statistics().Wire // keep-alive packets between trials do not count
	}
	p.gate.Lock()
	err := p.begin(first, start)
	p.shut = err != nil
	p.gate.Unlock()
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(p.options.DeliveryTimeout); !p.connected(); {
		if time.Now().After(deadline) {
			return p.broken()
		}
		if err := wait.For(ctx, reconnectPause); err != nil {
			return context.Canceled
		}
	}
	if p.options.Role == Echo {
		return nil
	}
	return each(p.senders, func(one *sender) error { return one.prepare(ctx) })
}

// upcoming returns the number from which on none of its publishers has sent a message.
func (p *pair) upcoming() (number uint64) {
	for _, one := range p.senders {
		number = max(number, one.ledger.upcoming()&(1<<publisherShift-1))
	}
	return number
}
