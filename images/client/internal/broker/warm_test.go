package broker

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// warming is a broker whose round trips depend on how long it has been used.
type warming struct {
	takes   func(after time.Duration) time.Duration
	began   time.Time
	arrived func([]byte, time.Time)
}

func (w *warming) Connect(context.Context, string, Events) (Connection, error) {
	return warmingLink{of: w}, nil
}

type warmingLink struct {
	stuckLink
	of *warming
}

func (l warmingLink) Subscribe(_ context.Context, _ string, arrived func([]byte, time.Time)) error {
	l.of.began, l.of.arrived = time.Now(), arrived
	return nil
}

func (l warmingLink) Publish(_ string, _ uint64, message []byte) error {
	time.Sleep(l.of.takes(time.Since(l.of.began)))
	l.of.arrived(message, time.Now())
	return nil
}

func TestBrokerIsWarmedUntilRoundTripsAreStable(t *testing.T) {
	for name, test := range map[string]struct {
		falls  int // rounds with round trips that are 10% shorter than in the previous one
		most   int
		rounds int
	}{
		"warm at the start":     {0, 20, 1 + warmVain},
		"warm after two rounds": {2, 20, 3 + warmVain},
		"never warm":            {99, 20, 20},
		"never warm, low limit": {99, 2, 2},
		"no rounds":             {99, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				driver := &warming{takes: func(after time.Duration) time.Duration {
					return time.Duration(math.Pow(0.9, float64(min(test.falls, int(after/warmRound)))) * float64(time.Millisecond))
				}}
				began := time.Now()
				warm(t.Context(), &Options{
					Driver: driver, Pairs: 1, Content: pool(t, 100), Compression: "None", Encryption: "None", DeliveryTimeout: time.Minute, WarmRounds: test.most,
				})
				if rounds := int(time.Since(began) / warmRound); rounds != test.rounds {
					t.Errorf("%d rounds, not %d", rounds, test.rounds)
				}
				if driver.began.IsZero() != (test.most == 0) {
					t.Error("the client must connect exactly if it has rounds")
				}
			})
		})
	}
}
