// Package computer reports the state of the computer during a trial, and what a process can use of its CPUs. A value that the
// kernel does not report is absent (nil or empty), never 0.
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

// Other returns a process of another container of the same pod, if the containers share their processes. Its cgroup is visible
// only through its root folder.
func Other(id int) Process {
	digits := strconv.Itoa(id)
	return Process{host: "/", root: filepath.Join("/proc", digits, "root"), id: digits}
}

// Host is the whole computer, without a quota.
func Host() Process { return Process{host: "/"} }

// Meter compares the state of a computer before and after a trial.
type Meter struct {
	process Process
	before  counters
}

// counters only grow. A counter is nil if the kernel does not report it.
type counters struct {
	thermal *thermal
	quota   *int64 // nanoseconds
}

// Watch reads the state before a trial. It reads some files for each CPU, so call it before the clock of the trial starts.
func (p Process) Watch() *Meter { return &Meter{process: p, before: p.look()} }

// End reads the state after the clock has stopped. local is the address of this computer that the load used, or nil if it is
// unknown.
func (m *Meter) End(local net.Addr) *contract.Computer {
	host, after := m.process.host, m.process.look()
	found := &contract.Computer{
		CPUFrequencyKilohertz:     meanFrequency(host, "scaling_cur_freq"),
		CPUMaxKilohertz:           meanFrequency(host, "cpuinfo_max_freq"),
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

// Grown returns by how much a counter has grown, or nil unless both values are known. A counter that was reset has grown by its
// value.
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

// Route returns the local address from which packets to HOST:PORT leave, or nil if there is none. It sends nothing, but it looks
// up a name.
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
