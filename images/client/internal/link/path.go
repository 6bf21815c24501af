// Package link imitates a network link: it sends packets at a rate, delays them, and loses some of them.
//
// The model is pure: it says when each packet arrives. The pump moves packets between two network interfaces as the model says.
package link

import (
	"errors"
	"fmt"
	"time"
)

// Path describes one direction of a link. The zero value passes every packet at once.
type Path struct {
	BitsPerSecond int64         `json:"bitsPerSecond,omitempty"` // of Ethernet frames, as tc counts them; 0: no limit
	Trace         string        `json:"trace,omitempty"`         // file with a recorded rate, instead of BitsPerSecond
	Delay         time.Duration `json:"delayNanoseconds,omitempty"`
	Jitter        time.Duration `json:"jitterNanoseconds,omitempty"` // the delay varies by at most this, up and down
	Loss          float64       `json:"loss,omitempty"`              // share of the packets
	Burst         float64       `json:"burst,omitempty"`             // mean number of packets lost in a row; 0: each alone
	QueuePackets  int           `json:"queuePackets,omitempty"`      // that wait or are being sent; 0: no limit
	QueueBytes    int           `json:"queueBytes,omitempty"`        // the same in bytes
	QueueTime     time.Duration `json:"queueNanoseconds,omitempty"`  // the same as a time, by the rate or a trace's mean rate
}

const (
	mostBits  = 1e12        // per second, so that the time of a packet is not 0
	mostDelay = time.Minute // so that what is in flight has a bound
)

// Check returns an error that names the first value that no link can have.
func (p *Path) Check() error {
	switch {
	case p.BitsPerSecond < 0 || p.BitsPerSecond > mostBits:
		return fmt.Errorf("bitsPerSecond is %d: write 1 to %.0f, or leave it out", p.BitsPerSecond, mostBits)
	case p.BitsPerSecond > 0 && p.Trace != "":
		return errors.New("bitsPerSecond and trace: write one of them")
	case p.Delay < 0 || p.Delay > mostDelay:
		return fmt.Errorf("delayNanoseconds is %d: write 0 to %d", p.Delay, mostDelay)
	case p.Jitter < 0 || p.Jitter > p.Delay:
		return fmt.Errorf("jitterNanoseconds is %d: write at most the delay, %d", p.Jitter, p.Delay)
	case !(p.Loss >= 0 && p.Loss < 1):
		return fmt.Errorf("loss is %v: write a share from 0 to less than 1", p.Loss)
	case p.Burst != 0 && !(p.Burst >= 1 && p.Loss*(p.Burst+1) <= p.Burst):
		return fmt.Errorf("burst is %v: write at least 1, and at least loss/(1-loss)", p.Burst)
	case p.QueuePackets < 0 || p.QueueBytes < 0 || p.QueueTime < 0 || p.QueueTime > mostDelay:
		return fmt.Errorf("queuePackets, queueBytes and queueNanoseconds: write numbers above 0, of nanoseconds at most %d, or leave them out", mostDelay)
	}
	return nil
}
