package link

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

const (
	ms   = time.Millisecond
	full = 1250 // bytes that take 1 ms at 10 Mbit/s
	rate = 10_000_000
)

func model(t *testing.T, path Path) *Model {
	t.Helper()
	made, err := NewModel(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// expect sends a packet and compares when it arrives; a negative time means that it does not arrive.
func expect(t *testing.T, m *Model, now time.Duration, size int, arrival time.Duration) {
	t.Helper()
	got, fate := m.Send(now, size)
	if fate != Delivered {
		got = -1
	}
	if got != arrival {
		t.Errorf("a packet of %d bytes at %v arrives at %v, not at %v", size, now, got, arrival)
	}
}

func TestLinkWithoutPropertiesDeliversAtOnce(t *testing.T) {
	m := model(t, Path{})
	expect(t, m, 0, full, 0)
	expect(t, m, 3*ms, 1, 3*ms)
}

func TestPacketsAreSentOneAfterAnotherAndThenDelayed(t *testing.T) {
	m := model(t, Path{BitsPerSecond: rate, Delay: 20 * ms})
	expect(t, m, 0, full, 21*ms)
	expect(t, m, 0, full, 22*ms)
	expect(t, m, 500*time.Microsecond, full/2, 22500*time.Microsecond)
	expect(t, m, 10*ms, full, 31*ms) // an idle link saves nothing up
}

func TestFullQueueDropsTheLastPacket(t *testing.T) {
	m := model(t, Path{BitsPerSecond: rate, QueuePackets: 2})
	expect(t, m, 0, full, 1*ms)
	expect(t, m, 0, full, 2*ms)
	expect(t, m, 0, 1, -1)
	expect(t, m, 1*ms, full, 3*ms) // the first one is sent by now

	m = model(t, Path{BitsPerSecond: rate, QueueTime: 2 * ms})
	expect(t, m, 0, full, 1*ms)
	expect(t, m, 0, full, 2*ms)
	expect(t, m, 0, 1, -1)

	m = model(t, Path{BitsPerSecond: rate, QueueBytes: 2*full - 1})
	expect(t, m, 0, 2*full, 2*ms) // an empty queue takes any size
	expect(t, m, 0, full, -1)
	expect(t, m, 2*ms, full, 3*ms)
	expect(t, m, 2*ms, full, -1)
	expect(t, m, 2*ms, full-1, 4*ms-800)
}

func TestDroppedPacketTakesNoTime(t *testing.T) {
	m := model(t, Path{BitsPerSecond: rate, QueuePackets: 1})
	expect(t, m, 0, full, 1*ms)
	for range 100 {
		expect(t, m, 0, full, -1)
	}
	expect(t, m, 1*ms, full, 2*ms)
}

func TestDelayVariesByTheJitterWithItsMean(t *testing.T) {
	m := model(t, Path{Delay: 20 * ms, Jitter: 4 * ms})
	var sum, least, most time.Duration = 0, time.Hour, 0
	const packets = 20000
	for number := range time.Duration(packets) {
		now := number * 10 * ms
		at, _ := m.Send(now, full)
		sum, least, most = sum+at-now, min(least, at-now), max(most, at-now)
	}
	if mean := sum / packets; mean < 19900*time.Microsecond || mean > 20100*time.Microsecond {
		t.Errorf("mean %v", mean)
	}
	if least < 16*ms || most > 24*ms || most-least < 7*ms {
		t.Errorf("from %v to %v", least, most)
	}
}

func TestPacketsDoNotOvertake(t *testing.T) {
	m := model(t, Path{BitsPerSecond: 100 * rate, Delay: 20 * ms, Jitter: 20 * ms, Loss: 0.1})
	random := rand.New(rand.NewPCG(2, 2))
	var now, latest time.Duration
	for range 10000 {
		now += time.Duration(random.Int64N(int64(ms)))
		at, fate := m.Send(now, 1+random.IntN(1514))
		if fate != Delivered {
			continue
		}
		if at < latest || at < now {
			t.Fatalf("sent at %v, arrives at %v, and the one before at %v", now, at, latest)
		}
		latest = at
	}
}

// lost returns the losses of some packets, and in how many bursts.
func lost(m *Model, packets int) (losses, bursts int) {
	before := Delivered
	for range packets {
		_, fate := m.Send(0, full)
		if fate == Lost {
			losses++
			if before != Lost {
				bursts++
			}
		}
		before = fate
	}
	return losses, bursts
}

func TestLossesHaveTheDeclaredShareAndBursts(t *testing.T) {
	const packets = 400_000
	for _, burst := range []float64{0, 1, 5} {
		losses, bursts := lost(model(t, Path{Loss: 0.02, Burst: burst}), packets)
		length := float64(losses) / float64(bursts)
		wanted := max(burst, 1)
		if burst == 0 {
			wanted = 1 / (1 - 0.02) // by chance
		}
		// 5 standard deviations; a burst has as much variance as its packets together
		deviation := math.Sqrt(packets*0.02) * max(1, 2*burst)
		if math.Abs(float64(losses)-packets*0.02) > 5*deviation || math.Abs(length/wanted-1) > 0.1 {
			t.Errorf("burst %v: %d losses of %d, %.2f in a row", burst, losses, packets, length)
		}
	}
}

func TestSeedDecidesWhichPacketsAreLost(t *testing.T) {
	pattern := func(seed uint64) (found [1000]Fate) {
		m, err := NewModel(Path{Loss: 0.3}, seed)
		if err != nil {
			t.Fatal(err)
		}
		for index := range found {
			_, found[index] = m.Send(0, full)
		}
		return found
	}
	if one, same, other := pattern(1), pattern(1), pattern(2); one != same || one == other {
		t.Error("the losses do not depend on the seed alone")
	}
}

// TestRateHoldsForAnyArrivals sends packets of any size at any time: the link keeps its rate, and never pauses while a
// packet waits.
func TestRateHoldsForAnyArrivals(t *testing.T) {
	m := model(t, Path{BitsPerSecond: rate})
	random := rand.New(rand.NewPCG(3, 3))
	var now, before time.Duration
	for range 10000 {
		now += time.Duration(random.Int64N(int64(2 * ms)))
		size := 1 + random.IntN(1514)
		at, _ := m.Send(now, size)
		if took := at - max(now, before); took != time.Duration(size)*800 {
			t.Fatalf("%d bytes take %v", size, took)
		}
		before = at
	}
}

func TestQueueForgetsSentPackets(t *testing.T) {
	m := model(t, Path{BitsPerSecond: rate, QueuePackets: 100})
	for number := range time.Duration(100_000) {
		m.Send(number*ms, full)
		m.Send(number*ms, full/2)
	}
	if kept := cap(m.queue.all); kept > 1000 {
		t.Errorf("the queue keeps %d packets", kept)
	}
}

func TestInvalidPathIsRefused(t *testing.T) {
	for _, path := range []Path{
		{BitsPerSecond: -1}, {BitsPerSecond: 1e13}, {BitsPerSecond: 1, Trace: "x"}, {Delay: -1}, {Delay: time.Hour}, {Jitter: 1},
		{Delay: 1, Jitter: 2}, {Loss: 1}, {Loss: -0.1}, {Loss: math.NaN()}, {Loss: 0.1, Burst: 0.5}, {Loss: 0.9, Burst: 2},
		{Burst: math.NaN()}, {QueuePackets: -1}, {QueueBytes: -1}, {QueueTime: -1}, {QueueTime: time.Hour}, {Trace: "/nowhere"},
	} {
		if _, err := NewModel(path, 1); err == nil {
			t.Errorf("%+v is accepted", path)
		}
	}
}
