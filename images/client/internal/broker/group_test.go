package broker

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tierbench.io/client/internal/contract"
)

// expected counts by sets what a ledger should count.
type expected struct {
	contract.Arrivals
	sent         uint64
	window       map[uint64]bool   // in flight
	arrived      []map[uint64]bool // at each subscriber
	newest       []uint64          // at each subscriber, plus one
	acknowledged map[uint64]bool
	to           audience
}

// missing returns how many deliveries of a message are outstanding.
func (e *expected) missing(number uint64) int {
	missing := len(e.arrived)
	if e.to.shared {
		missing = 1
	}
	for _, arrived := range e.arrived {
		if arrived[number] {
			missing--
		}
	}
	return missing
}

func (e *expected) arrive(number uint64, subscriber int) {
	if e.arrived[subscriber][number] || e.missing(number) == 0 {
		e.Duplicated++
		return
	}
	e.arrived[subscriber][number] = true
	e.Received++
	if number+1 < e.newest[subscriber] {
		e.OutOfOrder++
	}
	e.newest[subscriber] = max(e.newest[subscriber], number+1)
	if e.missing(number) == 0 {
		delete(e.window, number)
	}
}

// close returns the expected arrivals of messages of 100 bytes.
func (e *expected) close() contract.Arrivals {
	for number := range e.sent {
		e.Lost += int64(e.missing(number))
		if e.acknowledged[number] {
			e.AcknowledgedLost += int64(e.missing(number))
		}
	}
	e.ReceivedBytes = 100 * e.Received
	return e.Arrivals
}

// TestLedgerCountsDeliveriesOfEachSubscriber compares a ledger with sets, for messages that are lost, repeated, late
// and in any order.
func TestLedgerCountsDeliveriesOfEachSubscriber(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		to := audience{subscribers: 1 + random.IntN(5), shared: random.IntN(2) == 0}
		const window = 4
		made := newLedger(time.Now(), 0, 100, limits{inFlight: window}, true, to)
		wanted := &expected{window: map[uint64]bool{}, newest: make([]uint64, to.subscribers), acknowledged: map[uint64]bool{}, to: to}
		for range to.subscribers {
			wanted.arrived = append(wanted.arrived, map[uint64]bool{})
		}
		for range 300 {
			isFull := made.acquire(canceled()) != nil
			if isFull != (len(wanted.window) >= window) {
				t.Fatalf("seed %d: full is %v with %d in flight", seed, isFull, len(wanted.window))
			}
			switch event := random.IntN(20); {
			case event < 6 && !isFull:
				number, _ := made.send(0, never)
				wanted.window[number] = true
				wanted.sent++
			case event < 18 && wanted.sent > 0:
				number := wanted.sent - 1 - uint64(random.IntN(int(min(wanted.sent, leastSlots))))
				if subscriber := random.IntN(to.subscribers); event < 15 {
					message := make([]byte, 100)
					made.write(number, message)
					made.arrive(message, subscriber, time.Now())
					wanted.arrive(number, subscriber)
				} else if !wanted.acknowledged[number] {
					made.acknowledge(number, time.Now())
					wanted.acknowledged[number] = true
				}
			case event == 19:
				made.expire(0)
				clear(wanted.window)
			}
		}
		counts, _ := made.close()
		if due := wanted.close(); *counts.Arrivals != due {
			t.Fatalf("seed %d, %+v: %+v instead of %+v", seed, to, counts.Arrivals, due)
		}
	}
}

// hub is a broker with any number of subscribers of a topic. It drops and repeats deliveries at regular intervals.
type hub struct {
	mutex       sync.Mutex
	subscribers map[string][]func([]byte, time.Time)
	deliveries  int
	drops       int
	repeats     int
	dropped     int64
	repeated    int64
}

func (h *hub) Connect(context.Context, string, Events) (Connection, error) {
	return &hubLink{of: h}, nil
}

type hubLink struct {
	stuckLink
	of *hub
}

func (l *hubLink) Subscribe(_ context.Context, topic string, arrived func([]byte, time.Time)) error {
	l.of.mutex.Lock()
	defer l.of.mutex.Unlock()
	l.of.subscribers[topic] = append(l.of.subscribers[topic], arrived)
	return nil
}

func (l *hubLink) Publish(topic string, _ uint64, message []byte) error {
	l.of.mutex.Lock()
	defer l.of.mutex.Unlock()
	to := l.of.subscribers[topic]
	if sharing := l.of.subscribers[shareOf+topic]; len(sharing) > 0 {
		to = sharing[l.of.deliveries%len(sharing):][:1]
	}
	for _, arrived := range to {
		l.of.deliver(func() { arrived(bytes.Clone(message), time.Now()) })
	}
	return nil
}

func (h *hub) deliver(once func()) {
	h.deliveries++
	switch {
	case h.deliveries%h.drops == 0:
		h.dropped++
		return
	case h.deliveries%h.repeats == 0:
		h.repeated++
		once()
	}
	once()
}

func TestGroupCountsDeliveriesOfEachPublisherAndSubscriber(t *testing.T) {
	for _, test := range []struct {
		publishers, subscribers int
		shared                  bool
		deliveries              int64
	}{{8, 1, false, 1}, {1, 8, false, 8}, {4, 3, false, 3}, {4, 2, true, 1}, {64, 64, false, 64}} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				driver := &hub{subscribers: map[string][]func([]byte, time.Time){}, drops: 7, repeats: 11}
				options := &Options{
					Driver: driver, Publishers: test.publishers, Subscribers: test.subscribers, Shared: test.shared, Role: Both, Content: pool(t, 100),
					Compression: "None", Encryption: "None", InFlight: 8, Messages: 50, DeliveryTimeout: time.Second,
				}
				made, err := connect(t.Context(), options, 3, "t1", 0, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				if err := made.load(t.Context()); err != nil {
					t.Fatal(err)
				}
				sum := contract.Arrivals{}
				for place, from := range made.senders {
					counts, _ := from.ledger.close()
					if counts.Sent != 50 || counts.Errors != 0 || counts.OutOfOrder != 0 {
						t.Errorf("publisher %d: %+v, %+v", place, counts, counts.Arrivals)
					}
					addArrivals(&sum, counts.Arrivals)
				}
				due := 50 * int64(test.publishers) * test.deliveries
				if sum.Lost != driver.dropped || sum.Received != due-driver.dropped || sum.Duplicated != driver.repeated || driver.dropped == 0 {
					t.Errorf("%d are due, %d were dropped and %d repeated: %+v", due, driver.dropped, driver.repeated, sum)
				}
			})
		})
	}
}

func TestMessageNumbersOfAGroupContinueAcrossTrials(t *testing.T) {
	driver := &hub{subscribers: map[string][]func([]byte, time.Time){}, drops: 1 << 30, repeats: 1 << 30}
	target := &Target{Options: &Options{
		Driver: driver, Topic: "a", Pairs: 2, Publishers: 3, Subscribers: 2, Role: Both, Content: pool(t, 100), Compression: "None", Encryption: "None",
		InFlight: 1, Messages: 50, DeliveryTimeout: time.Second, Tuning: Light, Keeps: true,
	}}
	for number := 1; number <= 3; number++ {
		exchange := run(t, target, number).trial.Exchange
		if exchange.Sent != 300 || exchange.Received != 600 || exchange.Lost+exchange.Duplicated+exchange.Errors != 0 || exchange.Connections != 10 {
			t.Errorf("trial %d: %+v, %+v", number, exchange, exchange.Arrivals)
		}
		if next := target.Options.Content.Next(50); target.first != uint64(number)*next {
			t.Errorf("trial %d: the next number is %d", number, target.first)
		}
	}
}

func TestMessageOfUnknownPublisherIsCorrupt(t *testing.T) {
	made := paired(t, &Options{InFlight: 1, Publishers: 2})
	number := uint64(2) << publisherShift
	message := bytes.Clone(made.options.Content.Content(number))
	made.senders[0].ledger.write(number, message)
	made.receivers[0].arrived(message, time.Now())
	counts, _ := made.senders[0].ledger.close()
	if counts.ErrorCauses[contract.Corrupt] != 1 {
		t.Errorf("%+v", counts)
	}
}
