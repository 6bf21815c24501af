//go:build linux

package cli

import (
	"github.com/spf13/cobra"

	"tierbench.io/client/internal/gate"
)

func gateCommand() *cobra.Command {
	var socket string
	command := &cobra.Command{
		Use:   "gate --socket FILE -- PROGRAM [ARGUMENT]…",
		Short: "Run a server only while its agent holds its gate open for a client",
		Long: `Runs in the pod of a server that knows no password. The agent connects to the socket when a client that it knows is there,
and the server is started; it is ended when that client has gone.`,
		Example: "  tierbench-client gate --socket /gates/0 -- iperf3 --server --forceflush",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, server []string) error {
			return gate.Serve(command.Context(), socket, server)
		},
	}
	command.Flags().StringVar(&socket, "socket", "", "where it is held open: a socket that is made here")
	if err := command.MarkFlagRequired("socket"); err != nil {
		panic(err)
	}
	return command
}
