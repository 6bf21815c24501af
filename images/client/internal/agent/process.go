package agent

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tierbench.io/client/internal/computer"
)

// process is one of the server's at one time.
type process struct {
	spent     time.Duration // CPU time of all its threads
	throttled *int64        // nanoseconds that a quota has held it back
}

// processes of a name, by their numbers; none if the pod's containers do not share their processes.
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

// busiest is the process that took most CPU between two moments, and how much: each has a limit of its own. One that was
// started meanwhile has taken what it has. False: there is none.
func busiest(before, after map[int]process) (pid int, took time.Duration, found bool) {
	for one, now := range after {
		spent := now.spent - before[one].spent
		if !found || spent > took || (spent == took && one < pid) {
			pid, took, found = one, spent, true
		}
	}
	return pid, took, found
}

// cpuClock reads the CPU-time clock of a process, all its threads together, as clock_getcpuclockid(3) names it: to the
// nanosecond, where /proc/PID/stat counts hundredths of a second.
func cpuClock(pid int) (time.Duration, error) {
	const processSched = 2 // CPUCLOCK_SCHED of linux/posix-timers.h, for a whole process
	var spent unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|processSched), &spent)
	return time.Duration(spent.Nano()), err
}
