// Package computer tells the state of the computer that a trial runs on, and what a process may use of its CPUs. What the
// kernel does not tell is absent (nil, or empty), never 0.
package computer

import (
	"net"
	"net/netip"
	"path/filepath"
	"strconv"

	"tierbench.io/client/internal/contract"
)

// Process is a process whose share of its computer is measured.
type Process struct {
	host string // folder with the proc and sys of the computer
	root string // the process's own root folder, which has its cgroup; empty for no process
	id   string
}

// Own is this process.
func Own() Process { return Process{host: "/", root: "/", id: "self"} }

// Other is a process of another container of the same pod, which share their processes: its cgroup is seen by way of its
// root folder alone.
func Other(id int) Process {
	digits := strconv.Itoa(id)
	return Process{host: "/", root: filepath.Join("/proc", digits, "root"), id: digits}
}

// Host is the whole computer, without a quota.
func Host() Process { return Process{host: "/"} }

// Meter compares a computer after a trial with the same before.
type Meter struct {
	process Process
	before  counters
}

// counters that only grow; nil is what the kernel does not tell.
type counters struct {
	thermal *thermal
	quota   *int64 // nanoseconds
}

// Watch takes the first look. It reads some files for each CPU: do so before a trial's clock starts.
func (p Process) Watch() *Meter { return &Meter{process: p, before: p.look()} }

// End takes the second look, after the clock was stopped. The interface is that of local, an address of this computer
// that the load went through; nil where it is not known.
func (m *Meter) End(local net.Addr) *contract.Computer {
	host, after := m.process.host, m.process.look()
	found := &contract.Computer{
		CPUFrequencyKilohertz:     meanFrequency(host, "scaling_cur_freq"),
		CPUMaximumKilohertz:       meanFrequency(host, "cpuinfo_max_freq"),
		CPUGovernor:               governor(host),
		PowerMode:                 powerMode(host),
		TemperatureMillidegrees:   temperature(host),
		ThermalThrottles:          throttles(m.before.thermal, after.thermal),
		QuotaThrottledNanoseconds: Grown(m.before.quota, after.quota),
		CongestionControl:         word(host, "proc/sys/net/ipv4/tcp_congestion_control"),
	}
	if link := interfaceOf(local); link != nil {
		mtu := int64(link.MTU)
		found.Interface, found.MTUBytes = link.Name, &mtu
	}
	return found
}

func (p Process) look() counters { return counters{lookThermal(p.host), p.Throttled()} }

// Grown is how much a counter has: nil unless both are known; a counter that was set back has grown to what it says.
func Grown(before, after *int64) *int64 {
	if before == nil || after == nil {
		return nil
	}
	more := *after - *before
	if more < 0 {
		more = *after
	}
	return &more
}

// Route is the local address that packets to HOST:PORT leave from; nil if there is none. Nothing is sent, but a name is
// looked up.
func Route(address string) net.Addr {
	socket, err := net.Dial("udp", address)
	if err != nil {
		return nil
	}
	defer socket.Close()
	return socket.LocalAddr()
}

func interfaceOf(local net.Addr) *net.Interface {
	if local == nil {
		return nil
	}
	wanted, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return nil
	}
	links, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for _, link := range links {
		addresses, err := link.Addrs()
		if err != nil {
			continue
		}
		for _, address := range addresses {
			if prefix, err := netip.ParsePrefix(address.String()); err == nil && prefix.Addr().WithZone("") == wanted.Addr().Unmap().WithZone("") {
				return &link
			}
		}
	}
	return nil
}
