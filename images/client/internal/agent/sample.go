package agent

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"tierbench.io/client/internal/contract"
)

// A tick is a hundredth of a second of one CPU. With fewer ticks, a share would be noise.
const fewestTicks = 100

// moment holds the counters of the node and of the network namespace at one point in time. A counter is nil if the kernel does
// not report it.
type moment struct {
	at        time.Time
	cpu       *cpuTicks
	diskRead  *int64
	pressure  *int64
	tcp       *tcpCounters
	processes map[int]process
}

// device is the block device of a directory.
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
	// Without ports the server is in another pod, and its TCP is not visible here.
	if counters, found := parseSNMP(text("/proc/net/snmp")); found && len(a.options.Ports) > 0 {
		now.tcp = &counters
	}
	return now
}

// text returns the content of a file in /proc. It is empty if the kernel has no such file, or refuses to read it.
func text(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(content)
}

// between returns what happened between two points in time.
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
