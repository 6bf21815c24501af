package computer

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// fake returns a process whose root folder has these files.
func fake(t *testing.T, files map[string]string) Process {
	t.Helper()
	root := t.TempDir()
	write(t, root, files)
	return Process{host: root, root: root, id: "self"}
}

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func is(t *testing.T, name string, value *int64, wanted int64) {
	t.Helper()
	if value == nil || *value != wanted {
		t.Errorf("%s: %v, not %d", name, value, wanted)
	}
}

func TestUnsupportedKernelLeavesFieldsAbsent(t *testing.T) {
	process := fake(t, nil)
	if found := *process.Watch().End(nil); found.CPUFrequencyKilohertz != nil || found.CPUMaxKilohertz != nil || found.CPUGovernor != "" ||
		found.PowerMode != "" || found.TemperatureMillidegrees != nil || found.ThermalThrottles != nil || found.QuotaThrottledNanoseconds != nil ||
		found.Interface != "" || found.MTUBytes != nil || found.CongestionControl != "" {
		t.Errorf("%+v", found)
	}
	if limit := process.CPULimit(); limit != 0 {
		t.Errorf("limit %d", limit)
	}
}

func TestFrequencyGovernorAndTemperatureAreReported(t *testing.T) {
	found := fake(t, map[string]string{
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq":  "1000000",
		"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq":  "1500000",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor":  "ondemand",
		"sys/devices/system/cpu/cpu10/cpufreq/scaling_cur_freq": "2000000",
		"sys/devices/system/cpu/cpu10/cpufreq/cpuinfo_max_freq": "2500000",
		"sys/devices/system/cpu/cpu10/cpufreq/scaling_governor": "ondemand",
		"sys/class/thermal/thermal_zone0/temp":                  "45000",
		"sys/class/thermal/thermal_zone1/temp":                  "61500",
		"sys/class/thermal/thermal_zone2/temp":                  "100000",
		"sys/class/thermal/thermal_zone2/type":                  "PMIC-Die",
		"sys/class/thermal/thermal_zone3/temp":                  "-274000",
		"proc/sys/net/ipv4/tcp_congestion_control":              "bbr",
	}).Watch().End(nil)
	is(t, "frequency", found.CPUFrequencyKilohertz, 1_500_000)
	is(t, "maximum", found.CPUMaxKilohertz, 2_000_000)
	is(t, "temperature", found.TemperatureMillidegrees, 61_500)
	if found.CPUGovernor != "ondemand" || found.CongestionControl != "bbr" || found.ThermalThrottles != nil {
		t.Errorf("%+v", found)
	}
}

func TestJetsonReportsPowerMode(t *testing.T) {
	files := map[string]string{"var/lib/nvpmodel/status": "pmode:0001 fmode:quiet"}
	if mode := fake(t, files).Watch().End(nil).PowerMode; mode != "1" {
		t.Errorf("%q", mode)
	}
	files["etc/nvpmodel.conf"] = "< POWER_MODEL ID=0 NAME=MAXN >\n< POWER_MODEL ID=1 NAME=5W >"
	if mode := fake(t, files).Watch().End(nil).PowerMode; mode != "5W" {
		t.Errorf("%q", mode)
	}
}

func TestThermalThrottlesAreCountedPerTrial(t *testing.T) {
	for name, one := range map[string]struct {
		before, after map[string]string
		throttles     int64
	}{
		"Intel, before only": {map[string]string{"sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "7"}, nil, 0},
		"Intel": {
			map[string]string{"sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "7", "sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count": "0"},
			map[string]string{"sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count": "3"}, 3,
		},
		"Pi, before only":      {map[string]string{piThrottled: "e0000"}, nil, 0},
		"Pi, under-voltage":    {map[string]string{piThrottled: "0"}, map[string]string{piThrottled: "50000"}, 1},
		"Pi, in the trial":     {map[string]string{piThrottled: "0"}, map[string]string{piThrottled: "80000"}, 1},
		"Pi, all the time":     {map[string]string{piThrottled: "e000e"}, nil, 1},
		"Pi, voltage alone":    {map[string]string{piThrottled: "0"}, map[string]string{piThrottled: "10001"}, 0},
		"a cooling device":     {map[string]string{"sys/class/thermal/cooling_device0/type": "cpufreq-cpu0", "sys/class/thermal/cooling_device0/cur_state": "2"}, nil, 1},
		"idle cooling device":  {map[string]string{"sys/class/thermal/cooling_device0/type": "cpufreq-cpu0", "sys/class/thermal/cooling_device0/cur_state": "0"}, nil, 0},
		"a counter set back":   {map[string]string{"sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "7"}, map[string]string{"sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "0"}, 0},
		"a package, not times": {map[string]string{"sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count": "1", "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_total_time_ms": "1"}, map[string]string{"sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_total_time_ms": "99"}, 0},
	} {
		process := fake(t, one.before)
		meter := process.Watch()
		write(t, process.host, one.after)
		is(t, name, meter.End(nil).ThermalThrottles, one.throttles)
	}
	process := fake(t, map[string]string{"sys/class/thermal/cooling_device0/type": "Fan", "sys/class/thermal/cooling_device0/cur_state": "2"})
	if found := process.Watch().End(nil).ThermalThrottles; found != nil {
		t.Errorf("a fan throttles: %d", *found)
	}
}

const sixteen = "Name:\tx\nCpus_allowed_list:\t0-127\n"

func TestLowestQuotaIsTheCPULimit(t *testing.T) {
	for name, one := range map[string]struct {
		files map[string]string
		limit int64
	}{
		"no quota":  {map[string]string{"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "max 100000"}, 16_000},
		"v2":        {map[string]string{"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "50000 100000"}, 500},
		"v2, pod":   {map[string]string{"proc/self/cgroup": "0::/pod/c", "sys/fs/cgroup/pod/c/cpu.max": "max 100000", "sys/fs/cgroup/pod/cpu.max": "150000 100000"}, 1_500},
		"v2, other": {map[string]string{"proc/self/cgroup": "0::/../other", "sys/fs/cgroup/cpu.max": "200000 100000"}, 2_000},
		"v1": {map[string]string{
			"proc/self/cgroup": "4:cpu,cpuacct:/kubepods/pod/c\n0::/kubepods/pod/c", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "25000", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
		}, 250},
		"v1, none": {map[string]string{
			"proc/self/cgroup": "4:cpu:/", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
		}, 16_000},
		"more than there is": {map[string]string{"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "90000000 100000"}, 16_000},
	} {
		one.files["proc/self/status"], one.files["sys/devices/system/cpu/online"] = sixteen, "0-7,9-16"
		if limit := fake(t, one.files).CPULimit(); limit != one.limit {
			t.Errorf("%s: %d, not %d", name, limit, one.limit)
		}
	}
}

func TestQuotaThrottlingIsCountedPerTrial(t *testing.T) {
	for name, one := range map[string]struct{ group, stat, before, after string }{
		"v2": {"0::/", "sys/fs/cgroup/cpu.stat", "usage_usec 9\nthrottled_usec 1000", "usage_usec 9\nthrottled_usec 3500"},
		"v1": {"3:cpu:/kubepods/c", "sys/fs/cgroup/cpu/cpu.stat", "nr_throttled 1\nthrottled_time 1000000", "nr_throttled 4\nthrottled_time 3500000"},
	} {
		process := fake(t, map[string]string{"proc/self/cgroup": one.group, one.stat: one.before})
		meter := process.Watch()
		write(t, process.host, map[string]string{one.stat: one.after})
		is(t, name, meter.End(nil).QuotaThrottledNanoseconds, 2_500_000)
	}
}

func TestMemoryIsLimitedByCgroup(t *testing.T) {
	for name, one := range map[string]struct {
		files map[string]string
		bytes int64
	}{
		"no limit":   {map[string]string{"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": "max"}, 8 << 20},
		"v2":         {map[string]string{"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": "1048576"}, 1 << 20},
		"v2, pod":    {map[string]string{"proc/self/cgroup": "0::/pod/c", "sys/fs/cgroup/pod/memory.max": "2097152"}, 2 << 20},
		"v1":         {map[string]string{"proc/self/cgroup": "5:memory:/kubepods/c", "sys/fs/cgroup/memory/memory.limit_in_bytes": "1048576"}, 1 << 20},
		"v1, no max": {map[string]string{"proc/self/cgroup": "5:memory:/", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"}, 8 << 20},
	} {
		one.files["proc/meminfo"] = "MemTotal:       99999 kB\nMemFree:            1 kB\nMemAvailable:       8192 kB"
		is(t, name, fake(t, one.files).MemoryAvailable(), one.bytes)
	}
	if found := fake(t, map[string]string{"proc/meminfo": "MemTotal: 9 kB"}).MemoryAvailable(); found != nil {
		t.Errorf("an old kernel has %d", *found)
	}
}

func TestUnreadableLimitIsUnknown(t *testing.T) {
	if limit := fake(t, map[string]string{"proc/self/cgroup": "0::/", "proc/self/status": sixteen}).CPULimit(); limit != 0 {
		t.Errorf("%d", limit)
	}
}

func TestHostHasNoQuota(t *testing.T) {
	process := fake(t, map[string]string{"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "50000 100000", "sys/fs/cgroup/cpu.stat": "throttled_usec 1", "proc/self/status": sixteen})
	process.root = ""
	if process.CPULimit() != 0 || process.Watch().End(nil).QuotaThrottledNanoseconds != nil {
		t.Error("the host has a quota")
	}
}

func TestInterfaceOfTheRouteIsReported(t *testing.T) {
	loopback, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	found := Own().Watch().End(Route("127.0.0.1:9"))
	is(t, "MTU", found.MTUBytes, int64(loopback.MTU))
	if found.Interface != "lo" {
		t.Errorf("%q", found.Interface)
	}
	if Route("no such name:9") != nil {
		t.Error("an unknown host has a route")
	}
}

func TestProcessHasACPULimit(t *testing.T) {
	if limit := Own().CPULimit(); limit < 1 || limit > int64(runtime.NumCPU())*1000 {
		t.Errorf("%d", limit)
	}
	if limit := Other(os.Getpid()).CPULimit(); limit != Own().CPULimit() {
		t.Errorf("%d by its number", limit)
	}
}

func TestMemoryCgroupIsReported(t *testing.T) {
	const v1 = "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t2\t60\t1\n"
	for name, one := range map[string]struct {
		files   map[string]string
		version int
		limits  bool
	}{
		"v2":               {map[string]string{"sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids"}, 2, true},
		"v2, switched off": {map[string]string{"sys/fs/cgroup/cgroup.controllers": "cpuset cpu io pids"}, 2, false},
		"v1":               {map[string]string{"proc/cgroups": v1 + "memory\t4\t60\t1"}, 1, true},
		"v1, switched off": {map[string]string{"proc/cgroups": v1 + "memory\t5\t60\t0"}, 1, false},
		"v2, not mounted":  {map[string]string{"proc/cgroups": v1 + "memory\t0\t60\t1"}, 2, true},
	} {
		version, limits := fake(t, one.files).MemoryGroup()
		if version != one.version || limits == nil || *limits != one.limits {
			t.Errorf("%s: version %d, %v", name, version, limits)
		}
	}
	if version, limits := fake(t, nil).MemoryGroup(); version != 0 || limits != nil {
		t.Errorf("version %d, %v", version, limits)
	}
}
