package agent

import (
	"time"

	"tierbench.io/client/internal/sockdiag"
)

const firstPause = time.Millisecond // a small file has been sent long before a whole interval is over

// roundTrips are the round trips of the server's connections, sampled during a trial. Each sample is weighted by its time, so the
// dense samples at the beginning do not dominate.
type roundTrips struct {
	stop, done  chan struct{}
	sum, weight float64 // nanoseconds times seconds, seconds
	maximum     int64
}

// sampleRoundTrips samples the smoothed round-trip time of every established connection to these local ports. The first sample
// comes after a millisecond, and the pauses grow up to the interval.
func sampleRoundTrips(ports map[uint16]bool, interval time.Duration) *roundTrips {
	watch := sockdiag.NewWatch(func(local, _ uint16) bool { return ports[local] })
	sampler := &roundTrips{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(sampler.done)
		for pause := min(firstPause, interval); ; pause = min(2*pause, interval) {
			select {
			case <-sampler.stop:
				return
			case <-time.After(pause):
				sampler.look(watch, pause)
			}
		}
	}()
	return sampler
}

func (r *roundTrips) look(watch *sockdiag.Watch, since time.Duration) {
	for _, one := range watch.Look() {
		if one.Established {
			r.add(time.Duration(one.Info.Rtt)*time.Microsecond, since)
		}
	}
}

func (r *roundTrips) add(roundTrip, since time.Duration) {
	r.sum += float64(roundTrip.Nanoseconds()) * since.Seconds()
	r.weight += since.Seconds()
	r.maximum = max(r.maximum, roundTrip.Nanoseconds())
}

// end stops sampling. It returns nil twice if there was no connection.
func (r *roundTrips) end() (mean, maximum *int64) {
	close(r.stop)
	<-r.done
	if r.weight == 0 {
		return nil, nil
	}
	return pointer(int64(r.sum / r.weight)), pointer(r.maximum)
}
