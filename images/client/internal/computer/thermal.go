package computer

import (
	"path/filepath"
	"strconv"
	"strings"
)

// The Jetson's PMIC-Die says 100 °C whatever it has.
const constantZone = "PMIC-Die"

// Bits of a Raspberry Pi's get_throttled: frequency capped, throttled, soft limit of temperature, now and since it booted.
const (
	piNow   = 0xe
	piSince = 0xe0000
)

const piThrottled = "sys/devices/platform/soc/soc:firmware/get_throttled"

// thermal is what the kernel says of CPUs slowed for their heat.
type thermal struct {
	events int64 // Intel: core_throttle_count and package_throttle_count, of each CPU
	since  uint64
	now    bool
}

// temperature of the hottest zone, in thousandths of a degree Celsius.
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

// lookThermal gives nil where nothing on this computer tells of throttling.
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

// throttles between two looks. A computer that tells its state, but counts nothing, was throttled once if it was at
// either look, or has been since it booted and was not before.
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
