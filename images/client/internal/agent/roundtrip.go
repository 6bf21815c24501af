package agent

import (
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// roundTrips of the server's connections, sampled while a trial runs.
type roundTrips struct {
	stop, done chan struct{}
	sum, count int64
	maximum    int64
}

// sampleRoundTrips looks at the smoothed round-trip time of every established connection to these local ports.
func sampleRoundTrips(ports map[uint16]bool, interval time.Duration) *roundTrips {
	sampler := &roundTrips{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(sampler.done)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			sampler.look(ports)
			select {
			case <-sampler.stop:
				return
			case <-ticker.C:
			}
		}
	}()
	return sampler
}

func (r *roundTrips) look(ports map[uint16]bool) {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		sockets, err := netlink.SocketDiagTCPInfo(family)
		if err != nil {
			continue // a kernel without inet_diag tells no round trips
		}
		for _, socket := range sockets {
			information, connection := socket.TCPInfo, socket.InetDiagMsg
			if information == nil || connection == nil || connection.State != netlink.TCP_ESTABLISHED || !ports[connection.ID.SourcePort] {
				continue
			}
			nanoseconds := int64(information.Rtt) * int64(time.Microsecond)
			r.sum += nanoseconds
			r.count++
			r.maximum = max(r.maximum, nanoseconds)
		}
	}
}

// end stops sampling; nil twice if no connection was seen.
func (r *roundTrips) end() (mean, maximum *int64) {
	close(r.stop)
	<-r.done
	if r.count == 0 {
		return nil, nil
	}
	return pointer(r.sum / r.count), pointer(r.maximum)
}
