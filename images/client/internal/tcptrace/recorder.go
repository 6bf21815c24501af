// Package tcptrace watches TCP at the sender: the kernel's values of each connection over time, by inet_diag in this network
// namespace, and its exact counts of events.
package tcptrace

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/sockdiag"
)

const (
	mostSamples     = 1024     // of a connection; beyond it every second one is removed, and the interval doubles
	mostConnections = 8        // in a trace: those that sent most
	mostTraced      = 2048     // samples of a trace, of all its connections: beyond it each has every second, third, … one
	preamble        = 64       // bytes at most that a connection sends ahead of its load: iperf3's cookie has 37
	agreement       = 64 << 10 // bytes at most that a connection sends to agree on a load
	noThreshold     = 0x7fffffff
	partsPerMillion = 1_000_000
)

// states are the states of congestion control, as tcp(7) numbers them.
var states = []string{"Open", "Disorder", "CWR", "Recovery", "Loss"}

// Ports chooses the connections of a server: by the local port on the server's side, and by the remote port on the client's side.
type Ports struct {
	Local, Remote map[uint16]bool
}

func (p Ports) choose(local, remote uint16) bool { return p.Local[local] || p.Remote[remote] }

// connection is a connection that was seen, by the number that the kernel gives it.
type connection struct {
	port    uint16 // of the server
	sent    uint64
	samples []sample
	resting sample // the last one before the load without data in flight
	began   time.Duration
}

type sample struct {
	at   time.Duration
	info unix.TCPInfo
}

// add keeps a sample. The load began before the first sample in which some of it has arrived, by the time that the kernel counted
// the connection as busy. Linux before 4.10 does not count this, and then the load began at that sample.
func (c *connection) add(next sample) {
	switch loaded := c.sent > preamble; {
	case !loaded && next.info.Bytes_acked > preamble:
		busy := time.Duration(next.info.Busy_time-c.resting.info.Busy_time) * time.Microsecond
		c.began = next.at - busy
	case !loaded && next.info.Unacked == 0:
		c.resting = next
	}
	c.sent = max(c.sent, next.info.Bytes_acked)
	c.samples = append(c.samples, next)
}

// isLoaded reports whether the connection has sent a part of its load since its first sample.
func (c *connection) isLoaded() bool { return c.sent-c.samples[0].info.Bytes_acked >= agreement }

// Recorder samples while a trial runs.
type Recorder struct {
	ports      Ports
	senders    int
	watch      *sockdiag.Watch
	interval   time.Duration
	begun      time.Time
	events     map[string]int64
	seen       map[[8]byte]*connection
	stop, done chan struct{}
}

// Start samples every interval until End. `senders` is the number of connections that carry the load.
func Start(ports Ports, senders int, interval time.Duration) *Recorder {
	recorder := newRecorder(ports, senders, interval)
	go recorder.run()
	return recorder
}

func newRecorder(ports Ports, senders int, interval time.Duration) *Recorder {
	return &Recorder{
		ports: ports, senders: senders, watch: sockdiag.NewWatch(ports.choose), interval: interval, begun: time.Now(), events: readEvents(),
		seen: map[[8]byte]*connection{}, stop: make(chan struct{}), done: make(chan struct{}),
	}
}

func (r *Recorder) run() {
	defer close(r.done)
	timer := time.NewTimer(r.interval)
	defer timer.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-timer.C:
		}
		if r.look(time.Since(r.begun)) {
			r.thin()
		}
		timer.Reset(r.interval)
	}
}

// look samples every connection. It returns true if one of them has the maximum number of samples.
func (r *Recorder) look(at time.Duration) (full bool) {
	for _, found := range r.watch.Look() {
		one := r.seen[found.Cookie()]
		if one == nil {
			one = &connection{port: found.Local}
			if r.ports.Remote[found.Remote] {
				one.port = found.Remote
			}
			r.seen[found.Cookie()] = one
		}
		one.add(sample{at, found.Info})
		full = full || len(one.samples) == mostSamples
	}
	if r.isLoaded() {
		r.watch.Complete()
	}
	return full
}

// isLoaded reports whether all senders have sent a part of their load, so none of them is unknown.
func (r *Recorder) isLoaded() bool {
	loaded := 0
	for _, one := range r.seen {
		if one.isLoaded() {
			loaded++
		}
	}
	return loaded >= r.senders
}

// thin removes every second sample, and halves the rate from now on.
func (r *Recorder) thin() {
	r.interval *= 2
	for _, one := range r.seen {
		kept := one.samples[:0]
		for index := 0; index < len(one.samples); index += 2 {
			kept = append(kept, one.samples[index])
		}
		one.samples = kept
	}
}

// Began returns when the connection that sent most began its load, after End. It returns false if there was none.
func (r *Recorder) Began() (time.Time, bool) {
	connections := r.bySent()
	if len(connections) == 0 || connections[0].sent <= preamble {
		return time.Time{}, false
	}
	return r.begun.Add(connections[0].began), true
}

func (r *Recorder) bySent() []*connection {
	return slices.SortedFunc(maps.Values(r.seen), func(one, other *connection) int { return cmp.Compare(other.sent, one.sent) })
}

// End stops sampling, and returns the connections that sent most, as many as carry the load. It leaves out the others, such as
// iperf3's control connection. It returns nil twice if there were none.
func (r *Recorder) End() (*contract.TCPActivity, *Trace) {
	close(r.stop)
	<-r.done
	connections := r.bySent()
	connections = connections[:min(r.senders, len(connections))]
	if len(connections) == 0 {
		return nil, nil
	}
	activity := &contract.TCPActivity{StatesPartsPerMillion: map[string]int64{}, Events: eventsSince(r.events)}
	counts := map[string]int64{}
	for _, one := range connections {
		activity.Samples += int64(len(one.samples))
		for _, sample := range one.samples {
			counts[stateName(sample.info.Ca_state)]++
		}
	}
	for name, count := range counts {
		activity.StatesPartsPerMillion[name] = count * partsPerMillion / activity.Samples
	}
	return activity, newTrace(r.interval, connections[:min(mostConnections, len(connections))])
}

func stateName(number uint8) string { return states[min(int(number), len(states)-1)] }
