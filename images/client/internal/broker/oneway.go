package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tierbench.io/client/internal/contract"
)

// Refusal is the reason why a broker refuses a message: the cause that is counted, and the broker's answer.
type Refusal struct{ Cause, Answer string }

func (r Refusal) Error() string { return "the server answers " + r.Answer }

// refused records a message that the broker has refused.
func (s *sender) refused(number uint64, why Refusal) {
	if s.accepts() {
		defer s.gate.RUnlock()
		s.ledger.refuse(number, why.Cause)
	}
}

// refuse counts a refused message as an error, and stops waiting for it.
func (l *ledger) refuse(number uint64, cause string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if number < l.first {
		return
	}
	l.fail(cause, 1)
	l.refused++
	one := &l.slots[number&uint64(len(l.slots)-1)]
	if one.number != number {
		return
	}
	l.forget(one)
	if one.state == pending {
		one.state = done
		l.inFlight--
	}
	l.signal()
}

// ask sends a message without a subscriber, and waits for the acknowledgement.
func ask(ctx context.Context, options *Options, name, topic string, number uint64, content []byte) error {
	answered := make(chan error, 2)
	connection, err := options.Driver.Connect(ctx, name, Events{
		Acknowledged: func(uint64, time.Time) { answered <- nil },
		Refused:      func(_ uint64, why Refusal) { answered <- why },
	})
	if err != nil {
		return err
	}
	defer connection.Close()
	go func() {
		if err := connection.Publish(topic, number, content); err != nil {
			answered <- err
		}
	}()
	select {
	case err = <-answered:
	case <-ctx.Done():
		connection.Close()
		err = <-answered
	}
	return err
}

// notReady returns the reason why no small message arrives.
func notReady(options *Options, err error) error {
	var refusal Refusal
	switch {
	case errors.As(err, &refusal) && refusal.Cause != contract.TimedOut:
		message := fmt.Sprintf("%v, for %v: fix the path of its URL or the account, or see its log", err, options.Ready)
		return &contract.Failure{Reason: "RequestsRefused", Message: message}
	case options.OneWay:
		message := fmt.Sprintf("no message was acknowledged within %v: %v: see the server's log, its address, and network policies", options.Ready, err)
		return &contract.Failure{Reason: "BrokerUnreachable", Message: message}
	}
	message := fmt.Sprintf("no message made the round trip within %v: %v: see the broker's log, its address, and network policies", options.Ready, err)
	return &contract.Failure{Reason: "BrokerUnreachable", Message: message}
}
