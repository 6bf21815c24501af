package link

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// While packets flow, the pump wakes once per tick, and handles all that arrived or is due. A single packet does
	// not wait for it.
	tick = 250 * time.Microsecond
	// Packets leave up to this much early, so that those of a tick leave at their time on average.
	early = tick / 2
	// The pump looks at its context this often.
	look = 100 * time.Millisecond

	highest = -20 // of the priorities of programs that share the processor

	packetBytes = 2048  // of a device's buffer; interfaces of the usual MTU have packets of up to 1518
	mostFlying  = 32768 // packets in a direction; one more is dropped
	mostAtOnce  = 256   // packets read in a row, before the other direction has its turn
)

// Count counts the packets of one direction by their fate.
type Count struct {
	Delivered int64 `json:"delivered"`
	Dropped   int64 `json:"dropped"` // the queue was full, or the interface at the end was down
	Lost      int64 `json:"lost"`
	Bytes     int64 `json:"deliveredBytes"`
}

// Pump moves packets between two ends as two models say, up from the first one to the second and down.
type Pump struct {
	up, down way
	began    time.Time
}

// NewPump returns a pump.
func NewPump(first, second End, up, down *Model) *Pump {
	return &Pump{up: way{from: first, to: second, model: up}, down: way{from: second, to: first, model: down}, began: time.Now()}
}

// Counts returns the counts of each direction. The pump must have ended.
func (p *Pump) Counts() (up, down Count) { return p.up.count, p.down.count }

// Run moves packets until the context ends, or a device is gone.
func (p *Pump) Run(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	preferProcess()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // nanoseconds
	for ctx.Err() == nil {
		began := p.clock()
		moved, err := p.move()
		if err != nil {
			return err
		}
		if moved > 0 {
			err = sleep(began + tick - p.clock())
		} else {
			err = p.wait(min(p.up.due(), p.down.due(), began+look) - p.clock())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *Pump) clock() time.Duration { return time.Since(p.began) }

// move receives the packets that have arrived, delivers those that are due, and returns how many.
func (p *Pump) move() (moved int, err error) {
	for _, one := range []*way{&p.up, &p.down} {
		received, errReceive := one.receive(p.clock)
		delivered, errDeliver := one.deliver(p.clock() + early)
		if err := errors.Join(errReceive, errDeliver); err != nil {
			return 0, err
		}
		moved += received + delivered
	}
	return moved, nil
}

// wait returns when a packet has arrived, or after a time.
func (p *Pump) wait(duration time.Duration) error {
	polled := [2]unix.PollFd{{Fd: int32(p.up.from.descriptor()), Events: unix.POLLIN}, {Fd: int32(p.down.from.descriptor()), Events: unix.POLLIN}}
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

// preferProcess lets the program run as soon as it is due, if it may, like the interrupt of a network card. It includes
// the threads of Go's runtime, because the pump waits for locks that they hold. Some control groups refuse the policy
// RR.
func preferProcess() {
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		thread, err := strconv.Atoi(task.Name())
		if err != nil {
			continue
		}
		attributes := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}
		if unix.SchedSetAttr(thread, &attributes, 0) != nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, thread, highest)
		}
	}
}
