package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/outside"
)

const askPause = 2 * time.Second

func joinCommand() *cobra.Command {
	var token, folder string
	var addresses []string
	member := &outside.Member{Log: os.Stderr, Pause: askPause, Measure: measureFor}
	command := &cobra.Command{
		Use:   "join URL --class CLASS --token TOKEN --pin PIN",
		Short: "Join an external class from a machine outside the cluster, and measure what its benchmarks ask for",
		Long: `Exchanges the token that "kubectl tierbench join" printed for a credential, once. Then it waits for work, measures, and
delivers its lines, until you end it. After a restart the same command continues; the token may have expired by then.`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			member.URL, member.Token = strings.TrimSuffix(arguments[0], "/"), token
			if !strings.HasPrefix(member.URL, "https://") || member.Class == "" || member.Pin == "" {
				return errors.New("join needs https://HOST:PORT, --class and --pin: copy the command that kubectl tierbench join prints")
			}
			var err error
			if member.Addresses, err = outside.ParseAddresses(addresses); err != nil {
				return err
			}
			if folder == "" {
				if folder, err = stateFolder(member.Class); err != nil {
					return err
				}
			}
			if member.State, err = outside.Open(folder); err != nil {
				return err
			}
			return member.Run(command.Context())
		},
	}
	set := command.Flags()
	set.StringVar(&member.Class, "class", "", "the external class")
	set.StringVar(&token, "token", "", "the token of the invitation")
	set.StringVar(&member.Pin, "pin", "", "the pin of the operator's key")
	set.StringVar(&folder, "state", "", "folder for the credential and for lines that are not delivered yet (default: of the user and class)")
	set.StringArrayVar(&addresses, "address", nil, "[FROM=]TO: reach servers at this host or host:port instead of FROM; can be repeated")
	return command
}

// stateFolder returns where a user's programs keep their settings, or the working directory on systems without such a place.
func stateFolder(class string) (string, error) {
	base, err := os.UserConfigDir()
	if err != nil {
		base, err = os.Getwd()
	}
	return filepath.Join(base, "tierbench", class), err
}

// measureFor measures a plan for a member.
func measureFor(ctx context.Context, given string, report contract.Report) (contract.Engine, error) {
	engine := contract.OwnEngine()
	made, err := planned(given)
	if err != nil {
		return engine, &contract.Failure{Reason: "InvalidArguments", Message: err.Error()}
	}
	err = made.run(func() error {
		if made.engine != nil {
			engine = made.engine.Maker()
		}
		return made.series.Run(ctx, report)
	})
	return engine, err
}
