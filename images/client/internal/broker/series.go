package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/wait"
)

const (
	probePause   = 200 * time.Millisecond
	probeTimeout = 2 * time.Second
)

// Target is a broker that messages are sent through.
type Target struct {
	Options *Options

	kept  []*pair // of the trial before, if there are any
	first uint64  // number of the first messages of the next trial
}

// Prepare waits until the broker delivers messages, and warms it up.
func (t *Target) Prepare(ctx context.Context) error {
	if err := becomeReady(ctx, t.Options); err != nil {
		return err
	}
	warm(ctx, t.Options)
	return nil
}

// becomeReady waits until a small message makes the round trip, then sends the largest message.
func becomeReady(ctx context.Context, options *Options) error {
	small := options.Content.Content(0)
	small = small[:min(len(small), numberBytes)]
	for deadline := time.Now().Add(options.Ready); ; {
		err := probe(ctx, options, small, probeTimeout)
		var failure *contract.Failure
		switch {
		case err == nil:
			return carries(ctx, options)
		case ctx.Err() != nil:
			return context.Canceled
		case errors.As(err, &failure):
			return failure
		case time.Now().After(deadline):
			message := fmt.Sprintf("no message made the round trip within %v: %v: see the broker's log, its address, and network policies", options.Ready, err)
			return &contract.Failure{Reason: "BrokerUnreachable", Message: message}
		}
		if err := wait.For(ctx, probePause); err != nil {
			return context.Canceled
		}
	}
}

// carries sends the largest message on the round trip.
func carries(ctx context.Context, options *Options) error {
	largest := options.Content.Largest()
	err := probe(ctx, options, largest, options.DeliveryTimeout)
	var failure *contract.Failure
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Canceled
	case errors.As(err, &failure):
		return failure
	}
	message := fmt.Sprintf("a message of %d bytes does not make the round trip, but a small one does: raise the broker's limit, or use smaller sizes (%v)", len(largest), err)
	return &contract.Failure{Reason: "PayloadNotDelivered", Message: message}
}

// probe sends one message to itself.
func probe(ctx context.Context, options *Options, content []byte, timeout time.Duration) error {
	limit, cancel := context.WithTimeout(ctx, timeout+probeTimeout)
	defer cancel()
	name := fmt.Sprintf("%s-probe-%d-%d", clientName(options), options.Part, time.Now().UnixNano()%1_000_000)
	connection, err := options.Driver.Connect(limit, name, Events{})
	if err != nil {
		return err
	}
	defer within(ctx, closeTimeout, connection.Close)
	arrived := make(chan struct{}, 1)
	topic := fmt.Sprintf("%s/probe/%d", options.Topic, options.Part)
	err = connection.Subscribe(limit, topic, func([]byte, time.Time) {
		select {
		case arrived <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return err
	}
	if err := connection.Publish(topic, 0, content); err != nil {
		return err
	}
	select {
	case <-arrived:
		return nil
	case <-limit.Done():
		return errors.New("it did not come back in time")
	}
}
