// Package rusage tells what this process costs, and the programs that it runs.
package rusage

import (
	"syscall"
	"time"
)

// CPU is the user and system time of this process so far.
func CPU() time.Duration { return spent(syscall.RUSAGE_SELF) }

// ProgramsCPU is the same of the programs that this process has run and that have ended.
func ProgramsCPU() time.Duration { return spent(syscall.RUSAGE_CHILDREN) }

func spent(who int) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(who, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
