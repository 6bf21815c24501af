package tcptrace

import (
	"os"
	"strconv"
	"strings"
)

// kept are the counters of TcpExt, by the kernel's names, that show what happened to segments.
var kept = []string{
	"TCPFastRetrans", "TCPSlowStartRetrans", "TCPTimeouts", "TCPLossProbes", "TCPLostRetransmit", "TCPSackRecovery",
	"TCPSpuriousRTOs", "TCPFullUndo", "TCPLossUndo",
}

// readEvents returns the events of this network namespace since its creation. It is empty if the kernel does not report them.
func readEvents() map[string]int64 {
	content, err := os.ReadFile("/proc/net/netstat")
	if err != nil {
		return nil
	}
	return parseEvents(string(content))
}

// parseEvents parses the TcpExt lines of /proc/net/netstat: a line of names, and a line of values.
func parseEvents(text string) map[string]int64 {
	values := map[string]int64{}
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "TcpExt:" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for index := 1; index < min(len(names), len(fields)); index++ {
			if value, err := strconv.ParseInt(fields[index], 10, 64); err == nil {
				values[names[index]] = value
			}
		}
	}
	return values
}

// eventsSince returns what happened since before. It leaves out what never happened.
func eventsSince(before map[string]int64) map[string]int64 {
	after, events := readEvents(), map[string]int64{}
	for _, name := range kept {
		if count := after[name] - before[name]; count > 0 {
			events[name] = count
		}
	}
	return events
}
