package broker

import (
	"context"
	"time"
)

// Remote is a connection of an engine, a separate program. The engine sends messages itself, and takes the times.
type Remote interface {
	Connection
	// Run sends messages, and returns how many when all have been sent. Their events come before that.
	Run(ctx context.Context, run Run) (sent int64, err error)
	// Echo subscribes to a topic, and sends each message back unchanged.
	Echo(ctx context.Context, topic, back string) error
	// Release frees the window of the run from the messages in flight, which may be lost.
	Release()
	// Ended returns why the engine has ended, and nil if it runs.
	Ended() error
}

// Run is what a publisher sends in a trial.
type Run struct {
	Topic          string
	First          uint64        // number of the first message
	Messages       int64         // at most
	Bytes          int           // that are sent of each message; 0: all
	Start          time.Time     // when the first message is due
	Interval       time.Duration // until the next one is due; 0: as soon as the window allows
	Until          time.Time     // no message is sent from here on; zero: no end
	Window         int           // messages in flight at most
	Back           Remote        // messages are in flight until they arrive here; nil: until they are acknowledged
	Unacknowledged int           // at most; 0: unlimited
}

// delegate lets an engine send all messages, and waits for those in flight.
func (s *sender) delegate(ctx context.Context, remote Remote) error {
	begun, phase := time.Now(), s.phase()
	run := Run{
		Topic: s.topic, First: s.ledger.upcoming(), Messages: s.due(phase), Start: begun.Add(phase), Interval: s.options.Interval,
		Window: s.options.InFlight, Unacknowledged: s.options.Unacknowledged,
	}
	if s.options.Duration > 0 {
		run.Until = begun.Add(s.options.Duration)
		if run.Interval > 0 {
			run.Until = run.Until.Add(s.late())
		}
	}
	if s.options.Role != Alone {
		run.Back, _ = s.connections[0].Connection.(Remote)
	}
	s.gate.Lock()
	s.run = run
	s.gate.Unlock()
	s.ledger.releaseBy(remote.Release)
	sent, err := remote.Run(ctx, run)
	if err != nil {
		return err
	}
	if run.Interval > 0 {
		s.ledger.recordUnsent(run.Messages - sent)
	}
	return s.drain(ctx)
}

// sent records a message of an engine.
func (s *sender) sent(number uint64, encoded int, at time.Time) {
	if !s.accepts() {
		return
	}
	defer s.gate.RUnlock()
	content, intended := s.options.Content.Content(number), time.Duration(0)
	if s.run.Interval > 0 {
		intended = s.run.Start.Add(time.Duration(number-s.run.First) * s.run.Interval).Sub(s.ledger.start)
	}
	s.ledger.sent(number, content, at, intended, s.late())
	s.plain += int64(len(content))
	s.encoded += int64(encoded)
}

// checked records a message that an engine has compared with what was sent.
func (p *pair) checked(number uint64, at time.Time) {
	if p.accepts() {
		defer p.gate.RUnlock()
		p.senders[0].ledger.arrived(number, at)
	}
}

func (p *pair) corrupt(time.Time) {
	if p.accepts() {
		defer p.gate.RUnlock()
		p.miscount()
	}
}

// ended returns why the engine of a pair has ended.
func (p *pair) ended() error {
	for _, one := range p.connections {
		if remote, is := one.Connection.(Remote); is && remote.Ended() != nil {
			return remote.Ended()
		}
	}
	return nil
}

// ended returns why the engine of all pairs has ended.
func ended(pairs []*pair) error {
	if len(pairs) == 0 || pairs[0] == nil {
		return nil
	}
	return pairs[0].ended()
}
