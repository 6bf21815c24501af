// Package usage tells what this process costs.
package usage

import (
	"syscall"
	"time"
)

// CPU is the user and system time of this process so far.
func CPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
