package agent

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// cpuTicks are the ticks of the node's CPUs since it booted.
type cpuTicks struct {
	total, idle, ioWait uint64
}

// parseStat reads the first line of /proc/stat.
func parseStat(text string) (cpuTicks, error) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 6 || fields[0] != "cpu" {
		return cpuTicks{}, fmt.Errorf("/proc/stat begins with %q", line)
	}
	var ticks cpuTicks
	// Guest time (the 9th and 10th number) is part of user time.
	for index, field := range fields[1:min(len(fields), 9)] {
		value, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return cpuTicks{}, fmt.Errorf("/proc/stat: %w", err)
		}
		ticks.total += value
		switch index {
		case 3:
			ticks.idle = value
		case 4:
			ticks.ioWait = value
		}
	}
	return ticks, nil
}

const sectorBytes = 512

// parseDiskRead returns the bytes that a device has read, from /proc/diskstats. It returns false if the device is missing.
func parseDiskRead(text string, major, minor uint32) (int64, bool) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[0] != strconv.FormatUint(uint64(major), 10) || fields[1] != strconv.FormatUint(uint64(minor), 10) {
			continue
		}
		sectors, err := strconv.ParseInt(fields[5], 10, 64)
		return sectors * sectorBytes, err == nil && sectors >= 0 && sectors <= math.MaxInt64/sectorBytes
	}
	return 0, false
}

// parsePressure returns the microseconds in which some task waited, from /proc/pressure/io.
func parsePressure(text string) (int64, bool) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "some" {
			continue
		}
		total, found := strings.CutPrefix(fields[len(fields)-1], "total=")
		value, err := strconv.ParseInt(total, 10, 64)
		return value, found && err == nil
	}
	return 0, false
}

// tcpCounters are the counters of all connections of a network namespace since its creation. With hostNetwork they are those of
// the node.
type tcpCounters struct {
	sent, retransmitted int64
}

// parseSNMP reads the Tcp lines of /proc/net/snmp: a line of names, a line of values.
func parseSNMP(text string) (tcpCounters, bool) {
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "Tcp:" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		values := map[string]int64{}
		for index := 1; index < min(len(names), len(fields)); index++ {
			value, err := strconv.ParseInt(fields[index], 10, 64)
			if err == nil {
				values[names[index]] = value
			}
		}
		sent, haveSent := values["OutSegs"]
		again, haveAgain := values["RetransSegs"]
		return tcpCounters{sent, again}, haveSent && haveAgain
	}
	return tcpCounters{}, false
}
