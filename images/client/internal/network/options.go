// Package network measures a network with iperf3 and ping, one trial after the other.
package network

import (
	"time"

	"tierbench.io/client/internal/agentclient"
	"tierbench.io/client/internal/egress"
)

// Directions of the load, from the client's point of view.
const (
	Upload        = "Upload"
	Download      = "Download"
	Bidirectional = "Bidirectional"
)

// Protocols of the load.
const (
	TCP = "TCP"
	UDP = "UDP"
)

// Options are the options of trials with one iperf3 server.
type Options struct {
	Host          string // of the iperf3 server
	Port          uint16
	Refused       egress.Networks // networks that may contain neither the server nor the ping host
	Protocol      string
	Direction     string
	Streams       int // of each direction
	Duration      time.Duration
	BitsPerSecond int64         // of UDP, each direction, all streams together
	Congestion    string        // algorithm of TCP's congestion control at both ends; empty: the defaults of their kernels
	Ready         time.Duration // how long the server may refuse a trial, or be busy
	Ping          Ping
	TraceInterval time.Duration      // between samples of TCP at the sending side; 0 for no trace
	Agent         *agentclient.Agent // nil for none
	Barrier       string             // of clients that measure at once
	Part, Parts   int                // which of them this one is, from 0, and how many there are
}

// Ping holds the options of ping before the load of each trial, and during it.
type Ping struct {
	Host      string
	Count     int // 0 for none
	Interval  time.Duration
	Size      int
	UnderLoad bool // whether as many requests are sent during the load, too
}

func (o *Options) traces() bool { return o.TraceInterval > 0 && o.Protocol == TCP }

// serverTrace returns the interval at which the agent samples TCP, or 0 if the server does not send.
func (o *Options) serverTrace() time.Duration {
	if !o.traces() || o.Direction == Upload {
		return 0
	}
	return o.TraceInterval
}
