package agent

import (
	"net"
	"testing"
	"time"
)

func TestShortTrialHasARoundTrip(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ports := map[uint16]bool{uint16(listener.Addr().(*net.TCPAddr).Port): true}
	for pause := 10 * time.Millisecond; pause < 2*time.Second; pause *= 2 {
		sampler := sampleRoundTrips(ports, time.Hour)
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(pause)
		mean, maximum := sampler.end()
		conn.Close()
		accepted.Close()
		if mean != nil {
			if *mean <= 0 || *mean > *maximum {
				t.Errorf("mean %d ns, maximum %d ns", *mean, *maximum)
			}
			return
		}
	}
	t.Error("no round trip was sampled")
}

func TestRoundTripsAreWeightedByTime(t *testing.T) {
	sampler := &roundTrips{stop: make(chan struct{}), done: make(chan struct{})}
	close(sampler.done)
	sampler.add(time.Millisecond, time.Millisecond)
	sampler.add(3*time.Millisecond, 99*time.Millisecond)
	mean, maximum := sampler.end()
	if want := int64(2_980_000); *mean < want-1 || *mean > want || *maximum != 3_000_000 {
		t.Errorf("mean %d ns instead of %d, maximum %d ns", *mean, want, *maximum)
	}
}
