package agent

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tierbench.io/client/internal/computer"
)

// process is a process of the server at one point in time.
type process struct {
	spent     time.Duration // CPU time of all its threads
	throttled *int64        // nanoseconds for which quotas throttled it
}

// processes returns the processes with a name by their numbers. It returns none if the containers of the pod do not share their
// processes.
func processes(name string) map[int]process {
	found := map[int]process{}
	if name == "" {
		return found
	}
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return found
	}
	for _, file := range files {
		if strings.TrimSuffix(text(file), "\n") != name {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		if spent, err := cpuClock(pid); err == nil {
			found[pid] = process{spent, computer.Other(pid).Throttled()}
		}
	}
	return found
}

// busiest returns the process that used most CPU between two points in time, and how much. A process that started meanwhile
// counts with all its CPU time. It returns false if there is none.
func busiest(before, after map[int]process) (pid int, took time.Duration, found bool) {
	for one, now := range after {
		spent := now.spent - before[one].spent
		if !found || spent > took || (spent == took && one < pid) {
			pid, took, found = one, spent, true
		}
	}
	return pid, took, found
}

// cpuClock reads the CPU-time clock of a process with all its threads, as clock_getcpuclockid(3) names it. It counts nanoseconds;
// /proc/PID/stat counts hundredths of a second.
func cpuClock(pid int) (time.Duration, error) {
	const processSched = 2 // CPUCLOCK_SCHED of linux/posix-timers.h, for a whole process
	var spent unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|processSched), &spent)
	return time.Duration(spent.Nano()), err
}
