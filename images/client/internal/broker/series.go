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

	kept  []*pair // of the previous trial, if any
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

// becomeReady waits until a small message arrives, then sends the largest message.
func becomeReady(ctx context.Context, options *Options) error {
	for deadline := time.Now().Add(options.Ready); ; {
		err := probe(ctx, options, 0, numberBytes, probeTimeout)
		var failure *contract.Failure
		switch {
		case err == nil:
			return carries(ctx, options)
		case ctx.Err() != nil:
			return context.Canceled
		case errors.As(err, &failure):
			return failure
		case time.Now().After(deadline):
			return notReady(options, err)
		}
		if err := wait.For(ctx, probePause); err != nil {
			return context.Canceled
		}
	}
}

// carries sends the largest message.
func carries(ctx context.Context, options *Options) error {
	number := options.Content.Largest()
	bytes := len(options.Content.Content(number))
	err := probe(ctx, options, number, bytes, options.DeliveryTimeout)
	var failure *contract.Failure
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Canceled
	case errors.As(err, &failure):
		return failure
	}
	message := fmt.Sprintf("a message of %d bytes does not arrive, but a small one does: raise the broker's limit, or use smaller sizes (%v)", bytes, err)
	return &contract.Failure{Reason: "PayloadNotDelivered", Message: message}
}

// probe sends the content of a message to itself, or its first bytes. Without subscribers of any kind it waits for the
// acknowledgement.
func probe(ctx context.Context, options *Options, number uint64, bytes int, timeout time.Duration) error {
	content := options.Content.Content(number)
	content = content[:min(len(content), bytes)]
	limit, cancel := context.WithTimeout(ctx, timeout+probeTimeout)
	defer cancel()
	name := fmt.Sprintf("%s-probe-%d-%d", clientName(options), options.Part, time.Now().UnixNano()%1_000_000)
	topic := fmt.Sprintf("%s/probe/%d", options.Topic, options.Part)
	if options.OneWay {
		return ask(limit, options, name, topic, number, content)
	}
	arrived := make(chan struct{}, 1)
	notify := func() {
		select {
		case arrived <- struct{}{}:
		default:
		}
	}
	events := Events{Arrived: func(uint64, time.Time) { notify() }, Corrupt: func(time.Time) { notify() }}
	connection, err := options.Driver.Connect(limit, name, events)
	if err != nil {
		return err
	}
	defer within(ctx, closeTimeout, connection.Close)
	if err := connection.Subscribe(limit, topic, func([]byte, time.Time) { notify() }); err != nil {
		return err
	}
	if err := connection.Publish(topic, number, content); err != nil {
		return err
	}
	for {
		select {
		case <-arrived:
			return nil
		case <-limit.Done():
			return errors.New("it did not come back in time")
		case <-time.After(probePause):
		}
		if remote, is := connection.(Remote); is && remote.Ended() != nil {
			return remote.Ended()
		}
	}
}
