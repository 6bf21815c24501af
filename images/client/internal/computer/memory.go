package computer

import (
	"path/filepath"
	"slices"
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

// MemoryGroup returns the version of the control groups of this computer, and whether they limit memory: a Raspberry Pi starts
// without that. It returns 0 and nil if the kernel does not report it.
func (p Process) MemoryGroup() (version int, limits *bool) {
	for line := range strings.Lines(text(p.root, groupsFolder, "cgroup.controllers")) {
		found := slices.Contains(strings.Fields(line), "memory")
		return 2, &found
	}
	for line := range strings.Lines(text(p.host, "proc/cgroups")) {
		if fields := strings.Fields(line); len(fields) == 4 && fields[0] == "memory" {
			found := fields[3] == "1"
			if fields[1] == "0" { // the number of a hierarchy of version 1
				return 2, &found
			}
			return 1, &found
		}
	}
	return 0, nil
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
