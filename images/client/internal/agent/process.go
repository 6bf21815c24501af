package agent

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const ticksPerSecond = 100 // USER_HZ, the same on every architecture that Linux shows it on

// processTime is the user and system time of all processes of a name; nil if there is none, or the pod's containers do not
// share their processes.
func processTime(name string) *time.Duration {
	if name == "" {
		return nil
	}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	var total time.Duration
	found := false
	for _, file := range files {
		if spent, is := parseProcess(text(file), name); is {
			total, found = total+spent, true
		}
	}
	if !found {
		return nil
	}
	return &total
}

// parseProcess reads a line of /proc/PID/stat, as proc_pid_stat(5) has it: utime and stime are fields 14 and 15.
func parseProcess(line, name string) (time.Duration, bool) {
	_, rest, found := strings.Cut(line, fmt.Sprintf(" (%s) ", name))
	fields := strings.Fields(rest)
	if !found || len(fields) < 13 {
		return 0, false
	}
	user, userErr := strconv.ParseInt(fields[11], 10, 64)
	system, systemErr := strconv.ParseInt(fields[12], 10, 64)
	if userErr != nil || systemErr != nil {
		return 0, false
	}
	return time.Duration(user+system) * time.Second / ticksPerSecond, true
}
