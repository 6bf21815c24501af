package broker

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/payload"
	"tierbench.io/client/internal/wait"
)

// pair is a publisher and the receiver of its returned messages, if there is one, or an echo.
type pair struct {
	*tally
	options     *Options
	number      int
	topic       string // of the messages
	connections []*counted
	publisher   Connection
	gate        sync.RWMutex // guards the callbacks of connections
	run         Run          // of an engine
	shut        bool         // between two trials callbacks are ignored
	once        sync.Once
}

// tally holds what a pair counts in one trial.
type tally struct {
	ledger  *ledger
	encoder *payload.Codec
	decoder *payload.Codec
	plain   int64 // bytes that were sent, before encoding
	encoded int64 // and after it
}

// newTally returns the tally of a trial that began at start. Its messages are numbered from first.
func newTally(options *Options, first uint64, start time.Time) (*tally, error) {
	encoder, err := payload.NewCodec(options.Compression, options.Encryption, options.Key)
	if err != nil {
		return nil, err
	}
	decoder, err := payload.NewCodec(options.Compression, options.Encryption, options.Key)
	if err != nil {
		return nil, err
	}
	most := limits{options.InFlight, options.Unacknowledged}
	made := newLedger(start, first, len(options.Content.Content(0)), most, options.Acknowledges, options.Role == Alone)
	return &tally{ledger: made, encoder: encoder, decoder: decoder}, nil
}

func clientName(options *Options) string {
	return strings.ReplaceAll(options.Topic, "/", "-")
}

// connect makes the connections of a pair's role, and subscribes. Messages are numbered from first, and start is the time at
// which the clock begins.
func connect(ctx context.Context, options *Options, number int, trial string, first uint64, start time.Time) (*pair, error) {
	counts, err := newTally(options, first, start)
	if err != nil {
		return nil, err
	}
	made := &pair{tally: counts, options: options, number: number, topic: options.topic(trial, number)}
	name := fmt.Sprintf("%s-%s-%d", clientName(options), trial, number)
	if options.Role == Echo {
		return made, made.echo(ctx, name)
	}
	if options.Role != Alone {
		if err := made.subscribe(ctx, name); err != nil {
			return made, err
		}
	}
	if made.publisher, err = made.openPublisher(ctx, name+"-p"); err != nil {
		return made, err
	}
	return made, made.publisher.Prepare(ctx, made.topic, options.Role == Alone)
}

func (p *pair) subscribe(ctx context.Context, name string) error {
	back := p.topic
	if p.options.Role == Publisher {
		back += "/echo"
	}
	subscriber, err := p.open(ctx, name+"-s", Events{Arrived: p.checked, Corrupt: p.corrupt})
	if err != nil {
		return err
	}
	return subscriber.Subscribe(ctx, back, p.arrived)
}

func (p *pair) openPublisher(ctx context.Context, name string) (Connection, error) {
	events := Events{Acknowledged: p.acknowledged, Sent: p.sent}
	if p.options.Messenger == nil {
		return p.open(ctx, name, events)
	}
	made := p.options.Messenger.EachMessage(name, events)
	p.connections = append(p.connections, &counted{Connection: made})
	return made, nil
}

func (p *pair) open(ctx context.Context, name string, events Events) (Connection, error) {
	connection, err := p.options.Driver.Connect(ctx, name, events)
	if err != nil {
		return nil, err
	}
	p.connections = append(p.connections, &counted{Connection: connection})
	return connection, nil
}

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

// accepts reports whether a callback belongs to a trial. If so, the caller must unlock the gate.
func (p *pair) accepts() bool {
	p.gate.RLock()
	if p.shut {
		p.gate.RUnlock()
		return false
	}
	return true
}

// decode reports whether a message of a trial can be decoded.
func (p *pair) decode(message []byte) bool {
	if !p.accepts() {
		return false
	}
	defer p.gate.RUnlock()
	_, err := p.decoder.Decode(message)
	if err != nil {
		p.ledger.corrupt()
	}
	return err == nil
}

func (p *pair) acknowledged(number uint64, at time.Time) {
	if p.accepts() {
		defer p.gate.RUnlock()
		p.ledger.acknowledge(number, at)
	}
}

func (p *pair) arrived(message []byte, at time.Time) {
	if !p.accepts() {
		return
	}
	defer p.gate.RUnlock()
	plain, err := p.decoder.Decode(message)
	if err != nil || !p.isValid(plain) {
		p.ledger.corrupt()
		return
	}
	p.ledger.arrive(plain, at)
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

// load makes the load of a trial. It ends early if a connection stays broken for longer than the timeout.
func (p *pair) load(ctx context.Context) error {
	watched, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go p.watch(watched, fail)
	err := p.sendAll(watched)
	if cause := context.Cause(watched); cause != nil {
		return cause
	}
	return err
}

// sendAll sends all messages, in an open loop by the clock of the pacer, and waits for those in flight. It records messages
// that were due before the end and could not be sent.
func (p *pair) sendAll(ctx context.Context) error {
	if remote, is := p.publisher.(Remote); is {
		return p.delegate(ctx, remote)
	}
	pacer, err := p.pacer(ctx)
	if err != nil {
		return err
	}
	if pacer != nil {
		defer pacer.close()
	}
	start, phase := p.ledger.now(), p.phase()
	due, late := p.due(phase), p.late()
	sent := int64(0)
	for ; sent < due; sent++ {
		intended := time.Duration(0)
		if pacer != nil {
			intended = start + phase + time.Duration(sent)*p.options.Interval
			if err := pacer.wait(ctx, intended); err != nil {
				return err
			}
		}
		if err := p.ledger.acquire(ctx); err != nil {
			return err
		}
		if p.isOver(p.ledger.now()-start, late) {
			break
		}
		if err := p.send(intended, late); err != nil {
			return err
		}
	}
	if pacer != nil {
		p.ledger.recordUnsent(due - sent)
	}
	return p.drain(ctx)
}

// drain waits for the messages in flight.
func (p *pair) drain(ctx context.Context) error {
	p.ledger.drain(ctx, p.options.DeliveryTimeout)
	if p.options.Role == Alone && !p.options.Acknowledges {
		return p.confirm(ctx)
	}
	return ctx.Err()
}

// confirm waits until the broker confirms that it has received what it does not acknowledge.
func (p *pair) confirm(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, p.options.DeliveryTimeout)
	defer cancel()
	if err := p.publisher.Confirm(limit); err != nil {
		message := fmt.Sprintf("it is unknown which messages the broker received (%v): see its log", err)
		return &contract.Failure{Reason: "Unconfirmed", Message: message}
	}
	p.ledger.confirm(p.plain)
	return nil
}

// phase returns the time within its first interval at which a pair begins, so that pairs do not begin at once.
func (p *pair) phase() time.Duration {
	longest := p.options.Interval
	if p.options.Duration > 0 {
		longest = min(longest, p.options.Duration)
	}
	if longest == 0 {
		return 0
	}
	return time.Duration(rand.New(rand.NewPCG(p.options.Seed, uint64(p.number))).Int64N(longest.Nanoseconds()))
}

// due returns the number of messages of a load. A closed loop ends by time.
func (p *pair) due(phase time.Duration) int64 {
	switch {
	case p.options.Duration == 0:
		return p.options.Messages
	case p.options.Interval == 0:
		return math.MaxInt64
	}
	return int64((p.options.Duration-phase-1)/p.options.Interval) + 1
}

// late returns by how much a message may be late without being counted as such.
func (p *pair) late() time.Duration { return max(p.options.Interval/10, time.Millisecond) }

// isOver reports whether no message is left to send. The last message of an open loop may be late.
func (p *pair) isOver(elapsed, late time.Duration) bool {
	if p.options.Interval > 0 {
		elapsed -= late
	}
	return p.options.Duration > 0 && elapsed >= p.options.Duration
}

func (p *pair) pacer(ctx context.Context) (*pacer, error) {
	if p.options.Interval == 0 {
		return nil, nil
	}
	return newPacer(ctx, p.ledger.start)
}

// watch counts missing messages as lost, so that a publisher that waits for credit continues. It ends a load whose
// connections stay broken.
func (p *pair) watch(ctx context.Context, fail context.CancelCauseFunc) {
	stood := time.Now()
	for wait.For(ctx, p.options.DeliveryTimeout/8) == nil {
		p.ledger.expire(p.options.DeliveryTimeout)
		if p.connected() {
			stood = time.Now()
		} else if time.Since(stood) > p.options.DeliveryTimeout {
			fail(p.broken())
		}
	}
}

func (p *pair) broken() error {
	if err := p.ended(); err != nil {
		return err
	}
	message := fmt.Sprintf("the connection broke, and no reconnect succeeded for %v: see the broker's log", p.options.DeliveryTimeout)
	return &contract.Failure{Reason: "BrokerUnreachable", Message: message}
}

func (p *pair) connected() bool {
	return !slices.ContainsFunc(p.connections, func(one *counted) bool { return !one.Connected() })
}

func (p *pair) send(intended, late time.Duration) error {
	number, slot := p.ledger.send(intended, late)
	slot.buffer = append(slot.buffer[:0], p.options.Content.Content(number)...)
	p.ledger.write(number, slot.buffer)
	message, err := p.encoder.Encode(slot.buffer)
	if err != nil {
		return err
	}
	if !p.encoder.Plain() {
		message = bytes.Clone(message)
	}
	p.plain += int64(len(slot.buffer))
	p.encoded += int64(len(message))
	return p.publisher.Publish(p.topic, number, message)
}

// close ends all connections. Their counts remain.
func (p *pair) close() {
	p.once.Do(func() {
		for _, connection := range p.connections {
			connection.Close()
		}
	})
}
