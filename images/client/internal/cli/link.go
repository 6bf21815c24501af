package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tierbench.io/client/internal/link"
)

func linkCommand() *cobra.Command {
	var first, second, up, down string
	var seed uint64
	command := &cobra.Command{
		Use:   "link --first NAME --second NAME --up JSON --down JSON",
		Short: "Create two network interfaces, and the link between them: rate, delay, jitter, loss and queue",
		Long: `Creates two network interfaces (TAP) and moves packets between them until it ends. Then it prints what became of them.
Each direction is a JSON object: bitsPerSecond or trace, delayNanoseconds, jitterNanoseconds, loss, burst, queuePackets and
queueBytes. A trace is a file of mahimahi's format, or of lines "seconds,Mbit/s". It needs the capability NET_ADMIN and /dev/net/tun.`,
		Example: `  tierbench-client link --first a --second b --up '{"bitsPerSecond": 12000000, "delayNanoseconds": 23000000}' --down '{}'`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			upward, err := parseModel(up, 2*seed)
			if err != nil {
				return fmt.Errorf("--up: %w", err)
			}
			downward, err := parseModel(down, 2*seed+1)
			if err != nil {
				return fmt.Errorf("--down: %w", err)
			}
			devices := make([]*link.Device, 0, 2)
			for _, name := range []string{first, second} {
				device, err := link.OpenTAP(name)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, device.Close()) }()
				devices = append(devices, device)
			}
			pump := link.NewPump(devices[0], devices[1], upward, downward)
			err = pump.Run(command.Context())
			counts := map[string]link.Count{}
			counts["up"], counts["down"] = pump.Counts()
			return errors.Join(err, json.NewEncoder(command.OutOrStdout()).Encode(counts))
		},
	}
	set := command.Flags()
	set.StringVar(&first, "first", "", "the interface where packets go up")
	set.StringVar(&second, "second", "", "the interface where packets go down")
	set.StringVar(&up, "up", "{}", "the link from the first interface to the second")
	set.StringVar(&down, "down", "{}", "the link from the second interface to the first")
	set.Uint64Var(&seed, "seed", 0, "what decides losses and jitter")
	for _, flag := range []string{"first", "second"} {
		if err := command.MarkFlagRequired(flag); err != nil {
			panic(err)
		}
	}
	return command
}

func parseModel(text string, seed uint64) (*link.Model, error) {
	var path link.Path
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&path); err != nil {
		return nil, err
	}
	return link.NewModel(path, seed)
}
