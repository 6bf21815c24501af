package broker

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/payload"
)

// sender is a publisher of a pair, and counts its messages.
type sender struct {
	*pair
	*tally
	place     int // among the publishers of the pair
	publisher Connection
}

// tally holds what a publisher counts in one trial.
type tally struct {
	ledger  *ledger
	encoder *payload.Codec
	plain   int64 // bytes that were sent, before encoding
	encoded int64 // and after it
}

// newTally returns the tally of a trial that began at start. Its messages are numbered from first.
func newTally(options *Options, first uint64, start time.Time) (*tally, error) {
	encoder, err := options.codec()
	if err != nil {
		return nil, err
	}
	most := limits{options.InFlight, options.Unacknowledged}
	made := newLedger(start, first, len(options.Content.Content(0)), most, options.Acknowledges, options.audience())
	return &tally{ledger: made, encoder: encoder}, nil
}

func (s *sender) connect(ctx context.Context, name string) (err error) {
	events, name := Events{Acknowledged: s.acknowledged, Refused: s.refused, Sent: s.sent}, named(name, "p", s.place)
	if s.options.Messenger != nil {
		s.publisher = s.options.Messenger.EachMessage(name, events)
		s.join(s.publisher)
	} else if s.publisher, err = s.open(ctx, name, events); err != nil {
		return err
	}
	return s.prepare(ctx)
}

func (s *sender) prepare(ctx context.Context) error {
	return s.publisher.Prepare(ctx, s.topic, s.options.Role == Alone)
}

// named returns the name of a connection. The first one of a side has no number.
func named(name, side string, place int) string {
	if place == 0 {
		return name + "-" + side
	}
	return fmt.Sprintf("%s-%s%d", name, side, place)
}

// number returns the number of a publisher among those of all pairs.
func (s *sender) number() int { return s.pair.number*s.options.publishers() + s.place }

func (s *sender) acknowledged(number uint64, at time.Time) {
	if s.accepts() {
		defer s.gate.RUnlock()
		s.ledger.acknowledge(number, at)
	}
}

// sendAll sends all messages, in an open loop by the clock of the pacer, and waits for those in flight. It records messages
// that were due before the end and could not be sent.
func (s *sender) sendAll(ctx context.Context) error {
	if remote, is := s.publisher.(Remote); is {
		return s.delegate(ctx, remote)
	}
	pacer, err := s.pacer(ctx)
	if err != nil {
		return err
	}
	if pacer != nil {
		defer pacer.close()
	}
	start, phase := s.ledger.now(), s.phase()
	due, late := s.due(phase), s.late()
	sent := int64(0)
	for ; sent < due; sent++ {
		intended := time.Duration(0)
		if pacer != nil {
			intended = start + phase + time.Duration(sent)*s.options.Interval
			if err := pacer.wait(ctx, intended); err != nil {
				return err
			}
		}
		if err := s.ledger.acquire(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil || s.isOver(s.ledger.now()-start, late) {
			break
		}
		if err := s.send(intended, late); err != nil {
			return err
		}
	}
	if pacer != nil {
		s.ledger.recordUnsent(due - sent)
	}
	return s.drain(ctx)
}

// drain waits for the messages in flight.
func (s *sender) drain(ctx context.Context) error {
	s.ledger.drain(ctx, s.options.DeliveryTimeout)
	if s.options.Role == Alone && !s.options.Acknowledges {
		return s.confirm(ctx)
	}
	return ctx.Err()
}

// confirm waits until the broker confirms that it has received what it does not acknowledge.
func (s *sender) confirm(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, s.options.DeliveryTimeout)
	defer cancel()
	if err := s.publisher.Confirm(limit); err != nil {
		message := fmt.Sprintf("it is unknown which messages the broker received (%v): see its log", err)
		return &contract.Failure{Reason: "Unconfirmed", Message: message}
	}
	s.ledger.confirm(s.plain)
	return nil
}

// phase returns the time within its first interval at which a publisher begins, so that publishers do not begin at once.
func (s *sender) phase() time.Duration {
	longest := s.options.Interval
	if s.options.Duration > 0 {
		longest = min(longest, s.options.Duration)
	}
	if longest == 0 {
		return 0
	}
	return time.Duration(rand.New(rand.NewPCG(s.options.Seed, uint64(s.number()))).Int64N(longest.Nanoseconds()))
}

// due returns the number of messages of a load. A closed loop ends by time.
func (s *sender) due(phase time.Duration) int64 {
	switch {
	case s.options.Duration == 0:
		return s.options.Messages
	case s.options.Interval == 0:
		return math.MaxInt64
	}
	return int64((s.options.Duration-phase-1)/s.options.Interval) + 1
}

// late returns by how much a message may be late without being counted as such.
func (s *sender) late() time.Duration { return max(s.options.Interval/10, time.Millisecond) }

// isOver reports whether no message is left to send. The last message of an open loop may be late.
func (s *sender) isOver(elapsed, late time.Duration) bool {
	if s.options.Interval > 0 {
		elapsed -= late
	}
	return s.options.Duration > 0 && elapsed >= s.options.Duration
}

func (s *sender) pacer(ctx context.Context) (*pacer, error) {
	if s.options.Interval == 0 {
		return nil, nil
	}
	return newPacer(ctx, s.ledger.start)
}

func (s *sender) send(intended, late time.Duration) error {
	number, slot := s.ledger.send(intended, late)
	slot.buffer = append(slot.buffer[:0], s.options.Content.Content(number)...)
	s.ledger.write(number, slot.buffer)
	message, err := s.encoder.Encode(slot.buffer)
	if err != nil {
		return err
	}
	if !s.encoder.Plain() {
		message = bytes.Clone(message)
	}
	s.plain += int64(len(slot.buffer))
	s.encoded += int64(len(message))
	return s.publisher.Publish(s.topic, number, message)
}
