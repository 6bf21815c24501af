package broker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/wait"
)

// pair is a publisher and the receiver of its returned messages, if there is one, or an echo. It is a group if several publishers
// or subscribers have its topic.
type pair struct {
	options     *Options
	number      int
	topic       string // of the messages
	senders     []*sender
	receivers   []*receiver
	joining     sync.Mutex // guards the list of connections
	connections []*counted
	gate        sync.RWMutex // guards the callbacks of connections
	run         Run          // of an engine
	shut        bool         // between two trials callbacks are ignored
	once        sync.Once
}

func clientName(options *Options) string {
	return strings.ReplaceAll(options.Topic, "/", "-")
}

// connect makes the connections of a pair's role, and subscribes. Messages are numbered from first, and start is the time at
// which the clock begins.
func connect(ctx context.Context, options *Options, number int, trial string, first uint64, start time.Time) (*pair, error) {
	made := &pair{options: options, number: number, topic: options.topic(trial, number)}
	for place := range options.publishers() {
		made.senders = append(made.senders, &sender{pair: made, place: place})
	}
	for place := range options.audience().subscribers {
		made.receivers = append(made.receivers, &receiver{pair: made, place: place})
	}
	if err := made.begin(first, start); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s-%s-%d", clientName(options), trial, number)
	if options.Role == Echo {
		return made, made.echo(ctx, name)
	}
	if err := each(made.receivers, func(one *receiver) error { return one.subscribe(ctx, name) }); err != nil {
		return made, err
	}
	return made, each(made.senders, func(one *sender) error { return one.connect(ctx, name) })
}

// begin makes the tallies of a trial.
func (p *pair) begin(first uint64, start time.Time) (err error) {
	for _, one := range p.senders {
		if one.tally, err = newTally(p.options, first|uint64(one.place)<<publisherShift, start); err != nil {
			return err
		}
	}
	for _, one := range p.receivers {
		if one.decoder, err = p.options.codec(); err != nil {
			return err
		}
	}
	return nil
}

func (p *pair) open(ctx context.Context, name string, events Events) (Connection, error) {
	connection, err := p.options.Driver.Connect(ctx, name, events)
	if err != nil {
		return nil, err
	}
	p.join(connection)
	return connection, nil
}

func (p *pair) join(connection Connection) {
	p.joining.Lock()
	defer p.joining.Unlock()
	p.connections = append(p.connections, &counted{Connection: connection})
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

// load makes the load of a trial. It ends early if a connection stays broken for longer than the timeout.
func (p *pair) load(ctx context.Context) error {
	watched, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go p.watch(watched, fail)
	err := each(p.senders, func(one *sender) error { return one.sendAll(watched) })
	if cause := context.Cause(watched); cause != nil {
		return cause
	}
	return err
}

// watch counts missing messages as lost, so that a publisher that waits for credit continues. It ends a load whose
// connections stay broken.
func (p *pair) watch(ctx context.Context, fail context.CancelCauseFunc) {
	stood := time.Now()
	for wait.For(ctx, p.options.DeliveryTimeout/8) == nil {
		for _, one := range p.senders {
			one.ledger.expire(p.options.DeliveryTimeout)
		}
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

// close ends all connections. Their counts remain.
func (p *pair) close() {
	p.once.Do(func() {
		_ = each(p.connections, func(one *counted) error {
			one.Close()
			return nil
		})
	})
}
