package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/pause"
)

const (
	probePause    = 200 * time.Millisecond
	probePatience = 2 * time.Second
)

// Run waits until the broker carries messages, and is warm, then runs warm-up trials and those that options ask for. Trials that fail
// are reported like others; an error is what ends the series early: a *contract.Failure, or context.Canceled.
func Run(ctx context.Context, options *Options, report contract.Reporter) error {
	if err := becomeReady(ctx, options); err != nil {
		return err
	}
	if options.Warms {
		warm(ctx, options)
	}
	return options.Each(func(number int, warmup bool) error {
		return runTrial(ctx, options, report, number, warmup)
	})
}

// becomeReady waits until a small message makes the round trip, then lets one of the payload's size make it.
func becomeReady(ctx context.Context, options *Options) error {
	small := options.Content[:min(len(options.Content), numberBytes)]
	for deadline := time.Now().Add(options.Ready); ; {
		err := probe(ctx, options, small, probePatience)
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
		if err := pause.For(ctx, probePause); err != nil {
			return context.Canceled
		}
	}
}

// carries lets one message of the payload's size make the round trip.
func carries(ctx context.Context, options *Options) error {
	err := probe(ctx, options, options.Content, options.Patience)
	var failure *contract.Failure
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Canceled
	case errors.As(err, &failure):
		return failure
	}
	message := fmt.Sprintf("a message of %d bytes does not make the round trip, a small one does: raise the broker's limit, or take smaller sizes (%v)", len(options.Content), err)
	return &contract.Failure{Reason: "PayloadNotDelivered", Message: message}
}

// probe sends one message to itself.
func probe(ctx context.Context, options *Options, content []byte, patience time.Duration) error {
	limit, cancel := context.WithTimeout(ctx, patience+probePatience)
	defer cancel()
	name := fmt.Sprintf("%s-probe-%d-%d", clientName(options), options.Part, time.Now().UnixNano()%1_000_000)
	connection, err := options.Driver.Connect(limit, name, Events{})
	if err != nil {
		return err
	}
	defer within(ctx, farewell, connection.Close)
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
