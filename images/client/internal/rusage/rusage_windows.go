package rusage

import (
	"syscall"
	"time"
)

// CPU returns the user and system time of this process.
func CPU() time.Duration {
	var created, ended, kernel, user syscall.Filetime
	process, err := syscall.GetCurrentProcess()
	if err == nil {
		err = syscall.GetProcessTimes(process, &created, &ended, &kernel, &user)
	}
	if err != nil {
		return 0
	}
	return span(kernel) + span(user)
}

// ProgramsCPU returns 0: Windows does not add up the time of child processes.
func ProgramsCPU() time.Duration { return 0 }

// span returns a duration, which Windows counts in units of 100 nanoseconds.
func span(given syscall.Filetime) time.Duration {
	return time.Duration(int64(given.HighDateTime)<<32+int64(given.LowDateTime)) * 100
}
