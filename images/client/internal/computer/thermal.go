package computer

import (
	"path/filepath"
	"strconv"
	"strings"
)

// The PMIC-Die of a Jetson always reports 100 °C.
const constantZone = "PMIC-Die"

// Bits of a Raspberry Pi's get_throttled: frequency capped, throttled, soft temperature limit, each now and since boot.
const (
	piNow   = 0xe
	piSince = 0xe0000
)

const piThrottled = "sys/devices/platform/soc/soc:firmware/get_throttled"

// thermal holds what the kernel reports about CPUs that are throttled because of heat.
type thermal struct {
	events int64 // Intel: core_throttle_count and package_throttle_count, of each CPU
	since  uint64
	now    bool
}

// temperature returns the temperature of the hottest zone, in thousandths of a degree Celsius.
func temperature(host string) *int64 {
	var hottest *int64
	for _, zone := range matching(host, "sys/class/thermal/thermal_zone[0-9]*") {
		value := number(zone, "temp")
		if value == nil || *value == 0 || text(zone, "type") == constantZone {
			continue
		}
		if hottest == nil || *value > *hottest {
			hottest = value
		}
	}
	return hottest
}

// lookThermal returns nil if nothing on this computer reports throttling.
func lookThermal(host string) *thermal {
	found, known := thermal{}, false
	for _, file := range matching(host, cpus, "thermal_throttle/*_throttle_count") {
		if value := number(file); value != nil {
			found.events, known = found.events+*value, true
		}
	}
	if bits, err := strconv.ParseUint(strings.TrimPrefix(text(host, piThrottled), "0x"), 16, 64); err == nil {
		found.since, found.now, known = bits&piSince, bits&piNow != 0, true
	}
	for _, file := range matching(host, "sys/class/thermal/cooling_device[0-9]*/type") {
		if state := number(filepath.Dir(file), "cur_state"); state != nil && strings.Contains(text(file), "cpufreq") {
			found.now, known = found.now || *state > 0, true
		}
	}
	if !known {
		return nil
	}
	return &found
}

// throttles returns the number of throttles between two readings. A computer that reports a state instead of a number counts as 1
// if it was throttled at either reading, or at some time in between.
func throttles(before, after *thermal) *int64 {
	if before == nil || after == nil {
		return nil
	}
	count := max(after.events-before.events, 0)
	if before.now || after.now || after.since&^before.since != 0 {
		count = max(count, 1)
	}
	return &count
}
