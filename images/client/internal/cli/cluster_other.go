//go:build !linux

package cli

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/plan"
)

// clusterCommands returns nothing: nodes of a cluster have Linux.
func clusterCommands() []*cobra.Command { return nil }

func plannedBroker(*plan.BrokerPlan) (*measurement, error) { return nil, onlyLinux("brokers") }

func plannedNetwork(*plan.NetworkPlan) (*measurement, error) { return nil, onlyLinux("networks") }

func onlyLinux(what string) error {
	return fmt.Errorf("on %s this program does not measure %s: use a machine with Linux", runtime.GOOS, what)
}

// linkCheck returns nil: only pods imitate links.
func linkCheck(plan.PlannedLink, plan.AgentAccess) func(context.Context) *contract.Link { return nil }
