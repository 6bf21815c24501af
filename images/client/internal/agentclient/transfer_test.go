package agentclient

import (
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// paced is a link with a fixed rate. Its reader waits once for a processor, after a number of bytes.
type paced struct {
	clock       time.Time
	arrival     time.Time
	read        int64
	stallsAfter int64
}

const bytesPerMillisecond = 2500 // 20 Mbit/s

func (p *paced) now() time.Time { return p.clock }

func (p *paced) Read(block []byte) (int, error) {
	if p.stallsAfter > 0 && p.read >= p.stallsAfter {
		p.clock, p.stallsAfter = p.clock.Add(80*time.Millisecond), 0
	}
	count := 1448
	if waiting := int(p.clock.Sub(p.arrival).Milliseconds()) * bytesPerMillisecond; waiting > count {
		count = min(waiting, len(block))
	}
	p.arrival = p.arrival.Add(time.Duration(count) * time.Millisecond / bytesPerMillisecond)
	if p.arrival.After(p.clock) {
		p.clock = p.arrival
	}
	p.read += int64(count)
	return count, nil
}

func TestReaderThatWaitsOnceDoesNotChangeTheRate(t *testing.T) {
	const size = 5_000_000
	for _, after := range []int64{0, size / 2 * 99 / 100, size / 2, size * 3 / 4, size * 99 / 100} {
		began := time.Unix(0, 0)
		link := &paced{clock: began, arrival: began, stallsAfter: after}
		found, err := rate(link, size, link.now)
		if asked := int64(1000 * bytesPerMillisecond); err != nil || found < asked*98/100 || found > asked*102/100 {
			t.Errorf("a wait after %d bytes: %d bytes per second, %v; want %d", after, found, err, asked)
		}
	}
}

func TestTransferThatEndsEarlyHasNoRate(t *testing.T) {
	if found, err := Rate(iotest.TimeoutReader(strings.NewReader("short")), 1<<20); err == nil {
		t.Errorf("%d bytes per second", found)
	}
}
