//go:build linux

package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/egress"
	"tierbench.io/client/internal/network"
	"tierbench.io/client/internal/plan"
)

func plannedNetwork(given *plan.NetworkPlan) (*measurement, error) {
	switch {
	case given.Protocol == network.UDP && given.KilobitsPerSecond == 0:
		return nil, errors.New("protocol UDP needs kilobitsPerSecond: it does not find the network's rate by itself")
	case given.Protocol == network.UDP && given.CongestionControl != "":
		return nil, errors.New("congestionControl is of TCP alone: leave it out with protocol UDP")
	}
	if err := checkParts(given.Part, given.Parts, given.Barrier, given.Targets[0].Agent); err != nil {
		return nil, err
	}
	cases := make([]contract.Case, len(given.Targets))
	for index, target := range given.Targets {
		made, err := networkTarget(given, &target)
		if err != nil {
			return nil, fmt.Errorf("targets[%d]: %w", index, err)
		}
		cases[index] = contract.Case{Target: made, Number: target.Case, Deadline: seconds(target.DeadlineSeconds), Check: linkCheck(given.Link, target.Agent)}
	}
	series, err := newSeries(cases, given.WarmupTrials, given.Schedule)
	if err != nil {
		return nil, err
	}
	return &measurement{series: series, text: contract.NewTextReport(os.Stdout, network.Words)}, nil
}

func networkTarget(given *plan.NetworkPlan, target *plan.NetworkTarget) (*network.Target, error) {
	host, digits, err := net.SplitHostPort(target.Server)
	port, noPort := strconv.ParseUint(digits, 10, 16)
	if err != nil || host == "" || noPort != nil {
		return nil, fmt.Errorf("server is %q: write HOST:PORT", target.Server)
	}
	refused, err := egress.Parse(given.RefusedNetworks)
	if err != nil {
		return nil, err
	}
	agent, err := connectAgent(target.Agent)
	if err != nil {
		return nil, err
	}
	pingHost := target.PingHost
	if pingHost == "" {
		pingHost = host
	}
	return &network.Target{Options: &network.Options{
		Host: host, Port: uint16(port), Refused: refused, Protocol: given.Protocol, Direction: given.Direction,
		Streams: given.Streams, Duration: seconds(given.DurationSeconds), BitsPerSecond: int64(given.KilobitsPerSecond) * 1000,
		Congestion: given.CongestionControl, Ready: milliseconds(given.ReadyMilliseconds), Agent: agent,
		TraceInterval: milliseconds(given.TraceIntervalMilliseconds), Barrier: given.Barrier, Part: given.Part, Parts: given.Parts,
		Ping: network.Ping{
			Host: pingHost, Count: given.Ping.Count, Interval: milliseconds(given.Ping.IntervalMilliseconds), Size: given.Ping.SizeBytes,
			UnderLoad: given.Ping.UnderLoad,
		},
	}}, nil
}
