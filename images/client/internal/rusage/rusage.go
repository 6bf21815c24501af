//go:build unix

// Package rusage returns the CPU time of this process and of the programs that it runs.
package rusage

import (
	"syscall"
	"time"
)

// CPU returns the user and system time of this process.
func CPU() time.Duration { return spent(syscall.RUSAGE_SELF) }

// ProgramsCPU returns the user and system time of the ended child processes.
func ProgramsCPU() time.Duration { return spent(syscall.RUSAGE_CHILDREN) }

func spent(who int) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(who, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
