package broker

import (
	"fmt"
	"os"
	"runtime"
)

// ownQuota is where a container sees the quota of its CPU, and its period: "50000 100000", or "max 100000" without one.
const ownQuota = "/sys/fs/cgroup/cpu.max"

// cpuLimit is what this program may use of CPUs, in thousandths of one, by the Go scheduler and by a quota.
func cpuLimit(quotaFile string) int64 {
	limit := int64(runtime.GOMAXPROCS(0)) * 1000
	content, err := os.ReadFile(quotaFile)
	if err != nil {
		return limit
	}
	var quota, period int64
	if _, err := fmt.Sscan(string(content), &quota, &period); err != nil || period < 1 {
		return limit
	}
	return min(limit, max(1, quota*1000/period))
}
