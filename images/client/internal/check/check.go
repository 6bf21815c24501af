// Package check reports what a pod on a node can do: which peers it reaches, and what its kernel allows.
package check

import (
	"context"
	"encoding/json"
	"net"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tierbench.io/client/internal/computer"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/prepare"
)

const (
	ok        = "ok"
	MostPeers = 12 // whose outcomes fit into a termination message
)

// Peer is a pod that answers questions. Questions without an address are not asked.
type Peer struct {
	Name     string `json:"name"`
	Address  string `json:"address"`  // HOST:PORT of the pod
	Service  string `json:"service"`  // HOST:PORT of its Service
	NodePort string `json:"nodePort"` // HOST:PORT of its Service on its node
	Host     string `json:"host"`     // name of its Service
}

// Options are the options of a check.
type Options struct {
	Peers     []Peer
	Collector string        // HOST:PORT
	Directory string        // whose disk is reported
	Each      time.Duration // for one attempt
	Timeout   time.Duration // for all attempts
	Now       func() time.Time
}

// Report is the result of a check. Values that the kernel does not report are absent.
type Report struct {
	Record       string    `json:"record"`
	Contract     int       `json:"contract"`
	StartedAt    string    `json:"startedAt"`
	EndedAt      string    `json:"endedAt"`
	Architecture string    `json:"architecture"`
	Cgroup       int       `json:"cgroupVersion,omitempty"`
	MemoryCgroup *bool     `json:"memoryCgroup,omitempty"`
	FreeBytes    *int64    `json:"freeBytes,omitempty"`
	SizeBytes    *int64    `json:"sizeBytes,omitempty"`
	Ping         string    `json:"ping"`
	Collector    string    `json:"collector,omitempty"`
	Peers        []Reached `json:"peers"`
}

// Reached holds the outcome of each question to a peer: ok, or why not in a few words.
type Reached struct {
	Name     string `json:"name"`
	TCP      string `json:"tcp,omitempty"`
	UDP      string `json:"udp,omitempty"`
	Ping     string `json:"ping,omitempty"`
	Service  string `json:"service,omitempty"`
	NodePort string `json:"nodePort,omitempty"`
	DNS      string `json:"dns,omitempty"`
}

// Run asks everything at the same time.
func Run(ctx context.Context, options Options) Report {
	report := Report{
		Record: "Check", Contract: contract.Version, StartedAt: contract.FormatTime(options.Now()), Architecture: runtime.GOARCH,
		Ping: outcome(mayPing()), Peers: make([]Reached, len(options.Peers)),
	}
	report.Cgroup, report.MemoryCgroup = computer.Own().MemoryGroup()
	if free, size, err := prepare.FreeAndTotal(options.Directory); err == nil {
		report.FreeBytes, report.SizeBytes = &free, &size
	}
	bounded, cancel := context.WithTimeout(ctx, options.Timeout)
	defer cancel()
	var asked sync.WaitGroup
	ask := func(into *string, question func(context.Context) error) {
		asked.Go(func() { *into = outcome(until(bounded, options.Each, question)) })
	}
	if options.Collector != "" {
		ask(&report.Collector, func(ctx context.Context) error { return handshake(ctx, options.Collector) })
	}
	for index, peer := range options.Peers {
		reached := &report.Peers[index]
		reached.Name = peer.Name
		if peer.Address != "" {
			ask(&reached.TCP, func(ctx context.Context) error { return exchange(ctx, "tcp", peer.Address) })
			ask(&reached.UDP, func(ctx context.Context) error { return exchange(ctx, "udp", peer.Address) })
			if host, _, err := net.SplitHostPort(peer.Address); err == nil && report.Ping == ok {
				ask(&reached.Ping, func(ctx context.Context) error { return echo(ctx, host) })
			}
		}
		if peer.Service != "" {
			ask(&reached.Service, func(ctx context.Context) error { return exchange(ctx, "tcp", peer.Service) })
		}
		if peer.NodePort != "" {
			ask(&reached.NodePort, func(ctx context.Context) error { return exchange(ctx, "tcp", peer.NodePort) })
		}
		if peer.Host != "" {
			ask(&reached.DNS, func(ctx context.Context) error { return lookUp(ctx, peer.Host) })
		}
	}
	asked.Wait()
	report.EndedAt = contract.FormatTime(options.Now())
	return report
}

// Line returns the report as one line of JSON.
func (r Report) Line() ([]byte, error) {
	line, err := json.Marshal(r)
	return append(line, '\n'), err
}

// mayPing returns an error if the kernel allows this process no echo requests.
func mayPing() error {
	socket, err := icmp4.open()
	if err == nil {
		err = unix.Close(socket)
	}
	return err
}
