package computer

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	mostProcessors = 1 << 16
	groupsFolder   = "sys/fs/cgroup"
)

// hierarchy is the hierarchy of control groups with the CPU controller.
type hierarchy struct {
	top, path string
	unified   bool // cgroup v2
}

// groups returns the folders of a process's control group and of its visible parents, because the quota of a pod is above that of
// its containers. A container without a namespace of control groups reads a path outside its mount. Then the mount is its own
// group.
func (h hierarchy) groups() []string {
	found := []string{}
	for path := filepath.Join("/", h.path); ; path = filepath.Dir(path) {
		found = append(found, filepath.Join(h.top, path))
		if path == "/" {
			return found
		}
	}
}

// hierarchies returns the hierarchies of the process, and none for the host.
func (p Process) hierarchies() []hierarchy {
	if p.root == "" {
		return nil
	}
	found := []hierarchy{}
	for line := range strings.Lines(text(p.host, "proc", p.id, "cgroup")) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		if fields[0] == "0" && fields[1] == "" {
			found = append(found, hierarchy{filepath.Join(p.root, groupsFolder), fields[2], true})
		}
		for _, controller := range strings.Split(fields[1], ",") {
			if controller == "cpu" {
				found = append(found, hierarchy{filepath.Join(p.root, groupsFolder, "cpu"), fields[2], false})
			}
		}
	}
	return found
}

// CPULimit returns what the process can use of the CPUs at once, in thousandths: the minimum of its processors and of the visible
// quotas of its control groups (v1, v2). It returns 0 if nothing is visible.
func (p Process) CPULimit() int64 {
	if _, err := os.Stat(filepath.Join(p.root, groupsFolder)); p.root == "" || err != nil {
		return 0
	}
	limit := 1000 * p.processors()
	for _, hierarchy := range p.hierarchies() {
		for _, group := range hierarchy.groups() {
			if quota := hierarchy.quota(group); quota > 0 && (limit == 0 || quota < limit) {
				limit = quota
			}
		}
	}
	return limit
}

// quota returns the quota of a group in thousandths of a CPU, or 0 if it has none.
func (h hierarchy) quota(group string) int64 {
	var quota, period int64
	content := text(group, "cpu.max")
	if !h.unified {
		content = text(group, "cpu.cfs_quota_us") + " " + text(group, "cpu.cfs_period_us")
	}
	if _, err := fmt.Sscan(content, &quota, &period); err != nil || quota < 1 || period < 1 {
		return 0
	}
	return max(1, quota*1000/period)
}

// Throttled returns how long quotas have throttled the process's group, in nanoseconds, summed over its CPUs. Of the group and
// its parents, the most throttled one counts. It returns nil if the kernel does not report it.
func (p Process) Throttled() *int64 {
	var most *int64
	for _, hierarchy := range p.hierarchies() {
		for _, group := range hierarchy.groups() {
			if held := hierarchy.throttled(group); held != nil && (most == nil || *held > *most) {
				most = held
			}
		}
	}
	return most
}

func (h hierarchy) throttled(group string) *int64 {
	name, unit := "throttled_time", int64(1)
	if h.unified {
		name, unit = "throttled_usec", 1000
	}
	for line := range strings.Lines(text(group, "cpu.stat")) {
		fields := strings.Fields(line)
		if len(fields) != 2 || fields[0] != name {
			continue
		}
		if value, err := strconv.ParseInt(fields[1], 10, 64); err == nil && value >= 0 {
			value *= unit
			return &value
		}
	}
	return nil
}

// processors returns the number of processors that the process may run on, or 0 if the kernel does not report it.
func (p Process) processors() int64 {
	if p.root == "" {
		return 0
	}
	for line := range strings.Lines(text(p.host, "proc", p.id, "status")) {
		if list, found := strings.CutPrefix(line, "Cpus_allowed_list:"); found {
			return overlap(strings.TrimSpace(list), text(p.host, "sys/devices/system/cpu/online"))
		}
	}
	return 0
}

// overlap counts the CPUs that are in both lists, such as 0-3,8. An unknown list of online CPUs means all.
func overlap(allowed, online string) int64 {
	one, other := members(allowed), members(online)
	if len(other) == 0 {
		return int64(len(one))
	}
	var count int64
	for cpu := range one {
		if other[cpu] {
			count++
		}
	}
	return count
}

func members(list string) map[int]bool {
	found := map[int]bool{}
	for _, span := range strings.Split(list, ",") {
		first, last, isRange := strings.Cut(span, "-")
		from, err := strconv.Atoi(first)
		if err != nil {
			continue
		}
		to := from
		if isRange {
			if to, err = strconv.Atoi(last); err != nil {
				continue
			}
		}
		for cpu := max(from, 0); cpu <= min(to, mostProcessors); cpu++ {
			found[cpu] = true
		}
	}
	return found
}
