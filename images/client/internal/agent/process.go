package agent

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processTime is the CPU time of all processes of a name; nil if there is none, or the pod's containers do not share their
// processes.
func processTime(name string) *time.Duration {
	if name == "" {
		return nil
	}
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return nil
	}
	var total time.Duration
	found := false
	for _, file := range files {
		if strings.TrimSuffix(text(file), "\n") != name {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		if spent, err := cpuClock(pid); err == nil {
			total, found = total+spent, true
		}
	}
	if !found {
		return nil
	}
	return &total
}

// cpuClock reads the CPU-time clock of a process, all its threads together, as clock_getcpuclockid(3) names it: to the
// nanosecond, where /proc/PID/stat counts hundredths of a second.
func cpuClock(pid int) (time.Duration, error) {
	const processSched = 2 // CPUCLOCK_SCHED of linux/posix-timers.h, for a whole process
	var spent unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|processSched), &spent)
	return time.Duration(spent.Nano()), err
}
