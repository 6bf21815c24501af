package computer

import (
	"slices"
	"strconv"
	"strings"
)

const cpus = "sys/devices/system/cpu/cpu[0-9]*"

// meanFrequency returns the mean of a frequency, in kHz, over all CPUs that report it. CPUs may differ.
func meanFrequency(host, name string) *int64 {
	var sum, count int64
	for _, file := range matching(host, cpus, "cpufreq", name) {
		if value := number(file); value != nil && *value > 0 {
			sum, count = sum+*value, count+1
		}
	}
	if count == 0 {
		return nil
	}
	mean := sum / count
	return &mean
}

// governor returns the governor of all CPUs, separated by commas if they differ.
func governor(host string) string {
	names := []string{}
	for _, file := range matching(host, cpus, "cpufreq/scaling_governor") {
		if name := text(file); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	joined := strings.Join(slices.Compact(names), ",")
	return joined[:min(len(joined), mostCharacters)]
}

// powerMode returns the power mode of a Jetson. nvpmodel writes "pmode:0002 fmode:quiet", and /etc/nvpmodel.conf has "<
// POWER_MODEL ID=2 NAME=15W >". Without that file, the number is the name.
func powerMode(host string) string {
	for _, field := range strings.Fields(text(host, "var/lib/nvpmodel/status")) {
		digits, found := strings.CutPrefix(field, "pmode:")
		mode, err := strconv.Atoi(digits)
		if !found || err != nil {
			continue
		}
		if name := powerModeName(text(host, "etc/nvpmodel.conf"), mode); name != "" {
			return name
		}
		return strconv.Itoa(mode)
	}
	return ""
}

func powerModeName(configuration string, mode int) string {
	for line := range strings.Lines(configuration) {
		fields := strings.Fields(line)
		if !slices.Contains(fields, "POWER_MODEL") || !slices.Contains(fields, "ID="+strconv.Itoa(mode)) {
			continue
		}
		for _, field := range fields {
			if name, found := strings.CutPrefix(field, "NAME="); found {
				return name[:min(len(name), mostCharacters)]
			}
		}
	}
	return ""
}
