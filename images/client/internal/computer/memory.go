package computer

import (
	"path/filepath"
	"strconv"
	"strings"
)

// MemoryAvailable returns the bytes that the page cache can use when this process reads a file. It is the available memory of the
// computer, or the limit of the process's control group if that is less, because pages are charged to the group. It returns nil
// if the kernel does not report it.
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

// memoryGroup returns the place of the memory limit for a line of /proc/PID/cgroup, and the name of the file. The name is empty
// if there is no limit.
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

// availableMemory returns MemAvailable of /proc/meminfo.
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
