package transfer

import (
	"math/bits"
	"syscall"
	"time"
)

const (
	mostMark    = 256 << 10
	leastMark   = 16 << 10 // slower transfers wake for all data
	markTime    = 250 * time.Microsecond
	markTimeout = 5 * time.Millisecond
	rateTime    = time.Millisecond
)

// mark is the low-water mark of a socket. The kernel wakes the reader once that many bytes have arrived, not for each segment. A
// wake-up costs more than reading, and on loopback it costs the server. The mark is what arrives in a quarter of a millisecond at
// the rate of the last millisecond. It is removed if it is not reached within five milliseconds.
type mark struct {
	socket syscall.RawConn // nil: without marks
	value  int64
	since  time.Time // when the millisecond began
	bytes  int64     // that arrived in it
}

// waits reports whether the kernel may hold back bytes that have arrived.
func (m *mark) waits() bool { return m.value > 1 }

// arrived counts bytes. It reports whether there is a new mark. There is none for the last bytes of a file, because too
// few may be left to reach it.
func (m *mark) arrived(now time.Time, number, left int64) (began bool) {
	m.bytes += number
	if left < 2*mostMark {
		if m.waits() {
			m.set(1)
		}
		return false
	}
	took := now.Sub(m.since)
	if took < rateTime {
		return false
	}
	next := markOf(m.bytes, took)
	m.since, m.bytes = now, 0
	if next == m.value {
		return false
	}
	began = !m.waits()
	m.set(next)
	return began && m.waits()
}

// markOf returns the mark for a rate: a power of two, or 1 for none.
func markOf(bytes int64, took time.Duration) int64 {
	wanted := float64(bytes) * markTime.Seconds() / took.Seconds()
	if wanted < leastMark {
		return 1
	}
	return min(mostMark, int64(1)<<(bits.Len64(uint64(wanted))-1))
}
