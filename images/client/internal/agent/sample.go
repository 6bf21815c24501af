package agent

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"tierbench.io/client/internal/contract"
)

// A tick is a hundredth of a second of one CPU: of fewer, a share would be noise.
const fewestTicks = 100

// moment is what the counters of node and network namespace say at one time. nil: the kernel does not tell.
type moment struct {
	at        time.Time
	cpu       *cpuTicks
	diskRead  *int64
	pressure  *int64
	tcp       *tcpCounters
	processes map[int]process
}

// device that a directory is on.
type device struct{ major, minor uint32 }

func deviceOf(directory string) (device, error) {
	var stat unix.Stat_t
	if err := unix.Stat(directory, &stat); err != nil {
		return device{}, err
	}
	number := uint64(stat.Dev) // 32 bits wide on some architectures
	return device{unix.Major(number), unix.Minor(number)}, nil
}

func (a *Agent) look() moment {
	now := moment{at: time.Now(), processes: processes(a.options.Process)}
	if ticks, err := parseStat(text("/proc/stat")); err == nil {
		now.cpu = &ticks
	}
	if read, found := parseDiskRead(text("/proc/diskstats"), a.disk.major, a.disk.minor); found {
		now.diskRead = &read
	}
	if waited, found := parsePressure(text("/proc/pressure/io")); found {
		now.pressure = &waited
	}
	// Without ports the server is in another pod, whose TCP is not seen from here.
	if counters, found := parseSNMP(text("/proc/net/snmp")); found && len(a.options.Ports) > 0 {
		now.tcp = &counters
	}
	return now
}

// text of a file of /proc; empty where this kernel has none, or will not say.
func text(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(content)
}

// between says what happened from one moment to another.
func between(before, after moment) contract.ServerSample {
	var sample contract.ServerSample
	if before.cpu != nil && after.cpu != nil && after.cpu.total >= before.cpu.total+fewestTicks {
		total := after.cpu.total - before.cpu.total
		waited := after.cpu.ioWait - min(after.cpu.ioWait, before.cpu.ioWait)
		idle := after.cpu.idle - min(after.cpu.idle, before.cpu.idle)
		sample.IOWaitPartsPerMillion = share(waited, total)
		sample.CPUPartsPerMillion = share(total-min(total, idle+waited), total)
	}
	if before.diskRead != nil && after.diskRead != nil {
		sample.DeviceReadBytes = pointer(*after.diskRead - *before.diskRead)
	}
	if before.pressure != nil && after.pressure != nil {
		elapsed := after.at.Sub(before.at).Microseconds()
		sample.IOPressurePartsPerMillion = share(uint64(*after.pressure-*before.pressure), uint64(max(elapsed, 1)))
	}
	if before.tcp != nil && after.tcp != nil {
		sample.TCPSegmentsSent = pointer(after.tcp.sent - before.tcp.sent)
		sample.TCPRetransmits = pointer(after.tcp.retransmitted - before.tcp.retransmitted)
	}
	if _, took, found := busiest(before.processes, after.processes); found {
		sample.ProcessCPUNanoseconds = pointer(took.Nanoseconds())
	}
	return sample
}

func share(part, whole uint64) *int64 {
	return pointer(min(int64(part*partsPerMillion/whole), partsPerMillion))
}

func pointer(value int64) *int64 { return &value }
