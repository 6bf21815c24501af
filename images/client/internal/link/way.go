package link

import (
	"fmt"
	"math"
	"time"
)

// flying is a packet on its way.
type flying struct {
	due    time.Duration
	buffer []byte
	size   int
}

// way is one direction of a pump. Its buffers are used again, so that it makes no garbage.
type way struct {
	from, to End
	model    *Model
	flight   []flying // from first on, and then from the beginning; it doubles when it is full
	first    int
	flies    int
	free     [][]byte
	count    Count
}

// receive receives the packets that have arrived, and returns how many. The clock is read after each of them: a thread
// that was suspended in between makes them late, and never early.
func (w *way) receive(clock func() time.Duration) (int, error) {
	for received := range mostAtOnce {
		buffer := w.buffer()
		size, err := w.from.read(buffer)
		if err != nil {
			return received, fmt.Errorf("reading a packet: %w", err)
		}
		if size == 0 {
			w.free = append(w.free, buffer)
			return received, nil
		}
		w.send(clock(), buffer, size)
	}
	return mostAtOnce, nil
}

func (w *way) send(now time.Duration, buffer []byte, size int) {
	due, fate := w.model.Send(now, size)
	switch {
	case fate == Lost:
		w.count.Lost++
	case fate == Dropped || w.flies == mostFlying:
		w.count.Dropped++
	default:
		w.fly(flying{due: due, buffer: buffer, size: size})
		return
	}
	w.free = append(w.free, buffer)
}

// deliver writes the packets that are due by an instant, and returns how many.
func (w *way) deliver(by time.Duration) (delivered int, err error) {
	for ; w.due() <= by; delivered++ {
		packet := w.flight[w.first]
		w.first = (w.first + 1) % len(w.flight)
		w.flies--
		w.free = append(w.free, packet.buffer)
		switch taken, err := w.to.write(packet.buffer[:packet.size]); {
		case err != nil:
			return delivered, fmt.Errorf("writing a packet: %w", err)
		case taken:
			w.count.Delivered++
			w.count.Bytes += int64(packet.size)
		default:
			w.count.Dropped++
		}
	}
	return delivered, nil
}

// due returns when the next packet arrives.
func (w *way) due() time.Duration {
	if w.flies == 0 {
		return math.MaxInt64
	}
	return w.flight[w.first].due
}

func (w *way) fly(packet flying) {
	if w.flies == len(w.flight) {
		grown := make([]flying, max(64, 2*len(w.flight)))
		copied := copy(grown, w.flight[w.first:])
		copy(grown[copied:], w.flight[:w.first])
		w.flight, w.first = grown, 0
	}
	w.flight[(w.first+w.flies)%len(w.flight)] = packet
	w.flies++
}

func (w *way) buffer() []byte {
	if last := len(w.free) - 1; last >= 0 {
		buffer := w.free[last]
		w.free = w.free[:last]
		return buffer
	}
	return make([]byte, w.from.largest())
}
