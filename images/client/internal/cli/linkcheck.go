//go:build linux

package cli

import (
	"context"
	"net"

	"tierbench.io/client/internal/agentclient"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/link"
	"tierbench.io/client/internal/plan"
)

const (
	checkSeconds  = 2 // that a transfer takes at the requested rate
	leastChecked  = 64 << 10
	usualMTU      = 1500
	frameBytes    = 14
	segmentHeader = 52 // of IPv4 and TCP, with time stamps
)

// linkCheck returns a function that measures the link to an agent, or nil if there is none.
func linkCheck(asked plan.PlannedLink, access plan.AgentAccess) func(context.Context) *contract.Link {
	if asked.Name == "" || access.URL == "" {
		return nil
	}
	return func(ctx context.Context) *contract.Link {
		found := &contract.Link{}
		agent, err := connectAgent(access)
		if err != nil {
			return found
		}
		took, err := agent.RoundTrip(ctx)
		if err != nil {
			return found
		}
		nanoseconds := took.Nanoseconds()
		found.RoundTripNanoseconds = &nanoseconds
		found.UploadBitsPerSecond = checkedRate(ctx, asked.UpKilobitsPerSecond, agent.Upload)
		found.DownloadBitsPerSecond = checkedRate(ctx, asked.DownKilobitsPerSecond, agent.Download)
		return found
	}
}

// checkedRate returns the rate of Ethernet frames that a transfer reaches, or nil without a requested rate.
func checkedRate(ctx context.Context, askedKilobits int, transfer func(context.Context, int64) (int64, error)) *int64 {
	if askedKilobits == 0 {
		return nil
	}
	size := int64(askedKilobits) * 1000 / 8 * checkSeconds
	bytesPerSecond, err := transfer(ctx, min(max(size, leastChecked), agentclient.MostTransferred))
	if err != nil {
		return nil
	}
	mtu := usualMTU
	if device, err := net.InterfaceByName(link.Inside); err == nil {
		mtu = device.MTU
	}
	bits := int64(float64(bytesPerSecond) * 8 * float64(mtu+frameBytes) / float64(mtu-segmentHeader))
	return &bits
}
