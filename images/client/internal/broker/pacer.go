package broker

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pacer wakes at given times by a timerfd that is read through the runtime's poller: the runtime's own timers fire half a
// millisecond late, more than a round trip takes.
type pacer struct {
	descriptor int // the file's: File.Fd would make it block
	file       *os.File
	base       time.Time
	at         int64 // the clock's nanoseconds at base
	stop       func() bool
}

// newPacer counts from base; its waits end with ctx.
func newPacer(ctx context.Context, base time.Time) (*pacer, error) {
	descriptor, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timerfd: %w", err)
	}
	var clock unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &clock); err != nil {
		return nil, fmt.Errorf("clock: %w", err)
	}
	file := os.NewFile(uintptr(descriptor), "timerfd")
	stop := context.AfterFunc(ctx, func() { file.Close() })
	return &pacer{descriptor, file, base, clock.Nano() - time.Since(base).Nanoseconds(), stop}, nil
}

// wait returns at a time since base, at once if it is over.
func (p *pacer) wait(ctx context.Context, until time.Duration) error {
	if time.Since(p.base) >= until {
		return ctx.Err()
	}
	when := unix.ItimerSpec{Value: unix.NsecToTimespec(p.at + until.Nanoseconds())}
	if err := unix.TimerfdSettime(p.descriptor, unix.TFD_TIMER_ABSTIME, &when, nil); err != nil {
		return fmt.Errorf("timerfd: %w", err)
	}
	var expirations [8]byte
	if _, err := p.file.Read(expirations[:]); err != nil && ctx.Err() == nil {
		return fmt.Errorf("timerfd: %w", err)
	}
	return ctx.Err()
}

func (p *pacer) close() {
	p.stop()
	p.file.Close()
}
