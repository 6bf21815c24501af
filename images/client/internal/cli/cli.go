// Package cli implements the command line of tierbench-client.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"tierbench.io/client/internal/contract"
)

const (
	exitFailure     = 1
	exitInterrupted = 128 + int(syscall.SIGTERM)
)

// Main runs the program and returns its exit code.
func Main(arguments []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	root := &cobra.Command{
		Use:           "tierbench-client",
		Short:         "Makes load, samples the node of a server, and prepares files to serve",
		Version:       contract.EngineVersion,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(measureCommand(), joinCommand(), standInCommand())
	root.AddCommand(clusterCommands()...)
	root.SetArgs(arguments)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	fmt.Fprintf(os.Stderr, "tierbench-client: %v\n", err)
	return exitFailure
}
