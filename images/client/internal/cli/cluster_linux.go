package cli

import "github.com/spf13/cobra"

// clusterCommands returns the commands for nodes of a cluster.
func clusterCommands() []*cobra.Command {
	return []*cobra.Command{agentCommand(), checkCommand(), gateCommand(), linkCommand(), prepareCommand(), preparedCommand()}
}
