package computer

import (
	"path/filepath"
	"strconv"
	"strings"
)

// MemoryAvailable is what the page cache may take when this process reads a file, in bytes: what the computer has available
// (with what is cached already and may go), and no more than the limits of the process's control group, to which the pages
// are charged. nil: the kernel does not tell.
func (p Process) MemoryAvailable() *int64 {
	available := availableMemory(text(p.host, "proc/meminfo"))
	if available == nil {
		return nil
	}
	for line := range strings.Lines(text(p.host, "proc", p.id, "cgroup")) {
		group, name := memoryGroup(strings.TrimSpace(line))
		if name == "" {
			continue
		}
		group.top = filepath.Join(p.root, groupsFolder, group.top)
		for _, folder := range group.groups() {
			if limit := number(folder, name); limit != nil && *limit < *available {
				available = limit
			}
		}
	}
	return available
}

// memoryGroup is where a line of /proc/PID/cgroup has its limit of memory, and the name of the file; empty if it has none.
func memoryGroup(line string) (hierarchy, string) {
	fields := strings.SplitN(line, ":", 3)
	switch {
	case len(fields) != 3:
		return hierarchy{}, ""
	case fields[0] == "0" && fields[1] == "":
		return hierarchy{path: fields[2]}, "memory.max"
	case fields[1] == "memory":
		return hierarchy{top: "memory", path: fields[2]}, "memory.limit_in_bytes"
	}
	return hierarchy{}, ""
}

// availableMemory reads MemAvailable, in kB, of /proc/meminfo.
func availableMemory(content string) *int64 {
	for line := range strings.Lines(content) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "MemAvailable:" {
			continue
		}
		if value, err := strconv.ParseInt(fields[1], 10, 54); err == nil && value >= 0 {
			value <<= 10
			return &value
		}
	}
	return nil
}
