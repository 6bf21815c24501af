package broker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const readings = 5

// pacer wakes at given times by a timerfd that the runtime's poller waits for. The runtime's own timers fire half a millisecond
// late, which is longer than a round trip. The timerfd is never read, because setting it again discards its expiration.
type pacer struct {
	file  *os.File
	ready syscall.RawConn
	base  time.Time
	at    int64 // the clock's nanoseconds at base
	stop  func() bool
}

// newPacer returns a pacer that counts from base. Its waits end with ctx.
func newPacer(ctx context.Context, base time.Time) (*pacer, error) {
	descriptor, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timerfd: %w", err)
	}
	at, err := clockAt(base)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(descriptor), "timerfd")
	ready, err := file.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("timerfd: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { file.Close() })
	return &pacer{file, ready, base, at, stop}, nil
}

// clockAt returns the kernel's clock at base. It takes the best of several readings, because a reading may be interrupted.
func clockAt(base time.Time) (int64, error) {
	var at int64
	narrowest := time.Duration(math.MaxInt64)
	for range readings {
		var clock unix.Timespec
		before := time.Since(base)
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &clock); err != nil {
			return 0, fmt.Errorf("clock: %w", err)
		}
		if took := time.Since(base) - before; took < narrowest {
			narrowest, at = took, clock.Nano()-(before+took/2).Nanoseconds()
		}
	}
	return at, nil
}

// wait returns at a time since base, or at once if that time has passed.
func (p *pacer) wait(ctx context.Context, until time.Duration) error {
	for time.Since(p.base) < until && ctx.Err() == nil {
		set := false
		var failed error
		err := p.ready.Read(func(descriptor uintptr) bool {
			if set {
				return true
			}
			set = true
			when := unix.ItimerSpec{Value: unix.NsecToTimespec(p.at + until.Nanoseconds())}
			_, _, errno := unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, descriptor, unix.TFD_TIMER_ABSTIME, uintptr(unsafe.Pointer(&when)), 0, 0, 0)
			if errno != 0 {
				failed = errno
			}
			return failed != nil
		})
		if err := errors.Join(err, failed); err != nil && ctx.Err() == nil {
			return fmt.Errorf("timerfd: %w", err)
		}
	}
	return ctx.Err()
}

func (p *pacer) close() {
	p.stop()
	p.file.Close()
}

// recordUnsent counts messages that were due and not sent.
func (l *ledger) recordUnsent(number int64) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.counts.Unsent = number
}
