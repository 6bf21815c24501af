package link

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// While packets flow the pump wakes once in this time, and handles all that came or is due. One packet alone has no part in it.
	tick = 250 * time.Microsecond
	// Packets leave up to this much early, so that those of a tick leave at their time on average.
	early = tick / 2
	// The pump looks at its context this often.
	look = 100 * time.Millisecond

	packetBytes = 2048  // of a buffer; interfaces of the usual MTU have packets of up to 1518
	mostFlying  = 32768 // packets in a direction; one more is dropped
	mostAtOnce  = 256   // packets read in a row, before the other direction has its turn
)

// Count is what became of the packets of one direction.
type Count struct {
	Delivered int64 `json:"delivered"`
	Dropped   int64 `json:"dropped"` // the queue was full, or the interface at the end was down
	Lost      int64 `json:"lost"`
	Bytes     int64 `json:"deliveredBytes"`
}

// Pump moves packets between two devices as two models say, up from the first one to the second and down.
type Pump struct {
	up, down way
	began    time.Time
}

// NewPump returns a pump.
func NewPump(first, second *Device, up, down *Model) *Pump {
	return &Pump{up: way{from: first, to: second, model: up}, down: way{from: second, to: first, model: down}, began: time.Now()}
}

// Counts returns what became of the packets in each direction. The pump must have ended.
func (p *Pump) Counts() (up, down Count) { return p.up.count, p.down.count }

// Run moves packets until the context ends, or a device is gone.
func (p *Pump) Run(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	preferThread()
	for ctx.Err() == nil {
		now := time.Since(p.began)
		moved, err := p.move(now)
		if err != nil {
			return err
		}
		if moved > 0 {
			err = sleep(now + tick - time.Since(p.began))
		} else {
			err = p.wait(min(p.up.due(), p.down.due(), now+look) - time.Since(p.began))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// move takes the packets that have come, delivers those that are due, and returns how many.
func (p *Pump) move(now time.Duration) (moved int, err error) {
	for _, one := range []*way{&p.up, &p.down} {
		received, errReceive := one.receive(now)
		delivered, errDeliver := one.deliver(now + early)
		if err := errors.Join(errReceive, errDeliver); err != nil {
			return 0, err
		}
		moved += received + delivered
	}
	return moved, nil
}

// wait returns when a packet has come, or after a time.
func (p *Pump) wait(duration time.Duration) error {
	polled := [2]unix.PollFd{{Fd: int32(p.up.from.fd), Events: unix.POLLIN}, {Fd: int32(p.down.from.fd), Events: unix.POLLIN}}
	timeout := unix.NsecToTimespec(int64(max(duration, 0)))
	if _, err := unix.Ppoll(polled[:], &timeout, nil); err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("ppoll: %w", err)
	}
	return nil
}

func sleep(duration time.Duration) error {
	if duration <= 0 {
		return nil
	}
	timeout := unix.NsecToTimespec(int64(duration))
	if err := unix.Nanosleep(&timeout, nil); err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("nanosleep: %w", err)
	}
	return nil
}

// preferThread lets the thread run as soon as it is due, where the process may: as the interrupt of a network card does.
func preferThread() {
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}, 0)
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
}
