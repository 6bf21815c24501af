package broker

import (
	"context"
	"errors"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
)

const never = time.Hour

var single = audience{subscribers: 1}

func startLedger(size, limit int) (*ledger, func() (uint64, []byte)) {
	made := newLedger(time.Now(), 0, size, limits{inFlight: limit}, false, single)
	return made, func() (uint64, []byte) {
		number, _ := made.send(0, never)
		message := make([]byte, size)
		made.write(number, message)
		return number, message
	}
}

func closeLedger(t *testing.T, made *ledger) contract.Exchange {
	t.Helper()
	counts, _ := made.close()
	if counts.Sent != counts.Received+counts.Lost {
		t.Errorf("sent %d is not the sum of received %d and lost %d", counts.Sent, counts.Received, counts.Lost)
	}
	return counts
}

func TestDuplicatedAndOutOfOrderMessagesAreCounted(t *testing.T) {
	made, send := startLedger(100, 10)
	_, first := send()
	_, second := send()
	_, third := send()
	for _, message := range [][]byte{second, first, second, third, third} {
		made.arrive(message, 0, time.Now())
	}
	counts := closeLedger(t, made)
	if counts.Received != 3 || counts.Duplicated != 2 || counts.OutOfOrder != 1 || counts.Lost != 0 {
		t.Errorf("%+v", counts)
	}
}

func TestTwoByteNumbersAreDistinguishedAfterWraparound(t *testing.T) {
	made, send := startLedger(2, 500)
	var waiting [][]byte
	const total = 200_000
	for range total {
		_, message := send()
		if waiting = append(waiting, message); len(waiting) == 400 {
			made.arrive(waiting[0], 0, time.Now())
			waiting = waiting[1:]
		}
	}
	for _, message := range waiting {
		made.arrive(message, 0, time.Now())
	}
	counts := closeLedger(t, made)
	if counts.Received != total || counts.Duplicated != 0 || counts.OutOfOrder != 0 {
		t.Errorf("%+v", counts)
	}
}

func TestMissingMessagesAreLostAndFreeTheWindow(t *testing.T) {
	made, send := startLedger(100, 2)
	_, late := send()
	number, _ := send()
	made.acknowledge(number, time.Now())
	if made.expire(never) != true {
		t.Error("a message expired too early")
	}
	if err := made.acquire(canceled()); !errors.Is(err, context.Canceled) {
		t.Error("a third message may be in flight")
	}
	made.expire(0)
	if err := made.acquire(context.Background()); err != nil {
		t.Error(err)
	}
	made.arrive(late, 0, time.Now())
	counts := closeLedger(t, made)
	if counts.Received != 1 || counts.Lost != 1 || counts.Acknowledged != 1 || counts.AcknowledgedLost != 1 {
		t.Errorf("%+v", counts)
	}
}

func TestMissingAcknowledgementIsAnError(t *testing.T) {
	made := newLedger(time.Now(), 0, 100, limits{inFlight: 10}, true, single)
	number, _ := made.send(0, never)
	made.send(0, never)
	made.acknowledge(number, time.Now())
	if counts := closeLedger(t, made); counts.ErrorCauses[contract.TimedOut] != 1 || counts.Errors != 1 {
		t.Errorf("%+v", counts)
	}
}

func TestRoundTripCountsFromTheIntendedTime(t *testing.T) {
	made := newLedger(time.Now().Add(-time.Second), 0, 100, limits{inFlight: 10}, false, single)
	number, _ := made.send(time.Millisecond, 10*time.Millisecond)
	message := make([]byte, 100)
	made.write(number, message)
	made.arrive(message, 0, time.Now())
	counts := closeLedger(t, made)
	if counts.LateSends != 1 {
		t.Errorf("%d late sends", counts.LateSends)
	}
	if intended, actual := made.roundTrip.Take().SumNanoseconds, made.actual.Take().SumNanoseconds; intended < 9e8 || actual > 1e8 {
		t.Errorf("%d ns from the intended time, %d from the actual", intended, actual)
	}
}

func TestUnknownMessageNumberIsCorrupt(t *testing.T) {
	made, send := startLedger(100, 10)
	_, message := send()
	message[0] = 1
	made.arrive(message, 0, time.Now())
	if counts := closeLedger(t, made); counts.ErrorCauses["Corrupt"] != 1 || counts.Received != 0 {
		t.Errorf("%+v", counts)
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestAcknowledgedPacingDoesNotWaitForArrivals(t *testing.T) {
	made := newLedger(time.Now(), 0, 100, limits{inFlight: 10, unacknowledged: 1}, true, single)
	number, _ := made.send(0, never)
	if err := made.acquire(canceled()); !errors.Is(err, context.Canceled) {
		t.Error("a message is sent before the previous one is acknowledged")
	}
	made.acknowledge(number, time.Now())
	if err := made.acquire(context.Background()); err != nil {
		t.Error(err)
	}
	made.send(0, never)
	made.expire(0)
	if err := made.acquire(canceled()); err != nil {
		t.Error("an expired message is awaited")
	}
}

func TestMessageWithoutSubscriberIsInFlightUntilAcknowledged(t *testing.T) {
	made := newLedger(time.Now(), 0, 100, limits{inFlight: 1}, true, audience{})
	number, slot := made.send(0, never)
	slot.buffer = make([]byte, 100)
	if err := made.acquire(canceled()); !errors.Is(err, context.Canceled) {
		t.Error("a second message may be in flight")
	}
	made.acknowledge(number, time.Now())
	if err := made.acquire(context.Background()); err != nil {
		t.Error(err)
	}
	counts, _ := made.close()
	if counts.Arrivals != nil || counts.Acknowledged != 1 || counts.AcknowledgedBytes != 100 || counts.Errors != 0 {
		t.Errorf("%+v", counts)
	}
}
