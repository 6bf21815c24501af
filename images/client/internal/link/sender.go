package link

import (
	"math"
	"sort"
	"time"
)

// sender says when a packet that is ready at an instant is sent completely. Packets are sent one after another.
type sender interface {
	send(ready time.Duration, size int) time.Duration
	mean() float64 // bits per second; 0: no limit
}

func newSender(path Path) (sender, error) {
	switch {
	case path.Trace != "":
		return readTrace(path.Trace)
	case path.BitsPerSecond > 0:
		return &constant{rate: float64(path.BitsPerSecond)}, nil
	}
	return unlimited{}, nil
}

type unlimited struct{}

func (unlimited) send(ready time.Duration, _ int) time.Duration { return ready }

func (unlimited) mean() float64 { return 0 }

type constant struct {
	rate float64 // bits per second
	free time.Duration
}

func (c *constant) send(ready time.Duration, size int) time.Duration {
	c.free = max(ready, c.free) + seconds(bits(size)/c.rate)
	return c.free
}

func (c *constant) mean() float64 { return c.rate }

// opportunities are instants at which a link sends up to opportunityBytes, and that repeat. The unused part of an
// opportunity serves the next packets, if they are ready by then.
type opportunities struct {
	times  []time.Duration // in order; the last one is the period
	next   int             // counted over all repetitions
	unused int             // bytes of it
}

// opportunityBytes is a full Ethernet frame: 1,500 bytes of IP, as a recorder of opportunities counts them.
const opportunityBytes = 1514

func (o *opportunities) send(ready time.Duration, size int) time.Duration {
	if o.at(o.next) < ready {
		o.next, o.unused = o.first(ready), opportunityBytes
	}
	for size > o.unused {
		size -= o.unused
		o.next, o.unused = o.next+1, opportunityBytes
	}
	o.unused -= size
	return o.at(o.next)
}

func (o *opportunities) mean() float64 {
	return bits(opportunityBytes*len(o.times)) / o.period().Seconds()
}

func (o *opportunities) at(number int) time.Duration {
	return time.Duration(number/len(o.times))*o.period() + o.times[number%len(o.times)]
}

// first returns the first opportunity that is not before the instant.
func (o *opportunities) first(instant time.Duration) int {
	before := max(instant-1, 0)
	within := before % o.period()
	return int(before/o.period())*len(o.times) + sort.Search(len(o.times), func(i int) bool { return o.times[i] > within })
}

func (o *opportunities) period() time.Duration { return o.times[len(o.times)-1] }

// steps are rates, each from its time to the next, that repeat.
type steps struct {
	times  []time.Duration // when each rate begins, from 0
	rates  []float64       // bits per second
	period time.Duration
	bits   float64 // in a period
	free   time.Duration
}

func (s *steps) send(ready time.Duration, size int) time.Duration {
	at, left := max(ready, s.free), bits(size)
	rounds := math.Floor(left / s.bits)
	at += time.Duration(rounds) * s.period
	left -= rounds * s.bits
	for left > 0 {
		index, end := s.step(at)
		if possible := s.rates[index] * (end - at).Seconds(); possible >= left {
			at, left = at+seconds(left/s.rates[index]), 0
		} else {
			at, left = end, left-possible
		}
	}
	s.free = at
	return at
}

func (s *steps) mean() float64 { return s.bits / s.period.Seconds() }

// step returns which rate holds at the instant, and until when.
func (s *steps) step(instant time.Duration) (index int, end time.Duration) {
	begin := instant - instant%s.period
	index = sort.Search(len(s.times), func(i int) bool { return s.times[i] > instant-begin }) - 1
	return index, begin + s.end(index)
}

func (s *steps) end(index int) time.Duration {
	if index+1 < len(s.times) {
		return s.times[index+1]
	}
	return s.period
}

func bits(size int) float64 { return 8 * float64(size) }

func seconds(value float64) time.Duration {
	return time.Duration(math.Round(value * float64(time.Second)))
}
