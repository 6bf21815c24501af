//go:build linux

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/link"
)

// linkOptions are the options of the command link.
type linkOptions struct {
	first, second, before, up, down, ready, terminationLog string
	seed                                                   uint64
}

func linkCommand() *cobra.Command {
	var options linkOptions
	command := &cobra.Command{
		Use:   "link {--first NAME --second NAME | --before INTERFACE} --up JSON --down JSON",
		Short: "Carry packets over an imitated link: rate, delay, jitter, loss and queue",
		Long: `Moves packets between two network interfaces until it ends. Then it prints what became of them. With --first and --second, it
creates both (TAP), which needs the capability NET_ADMIN and /dev/net/tun. With --before, the link is between this network namespace
and its interface: addresses and routes move to a new interface, link0. It needs the capabilities NET_ADMIN and NET_RAW.
Each direction is a JSON object: bitsPerSecond or trace, delayNanoseconds, jitterNanoseconds, loss, burst, queuePackets, queueBytes
and queueNanoseconds. A trace is a file of mahimahi's format, or of lines "seconds,Mbit/s".`,
		Example: `  tierbench-client link --first a --second b --up '{"bitsPerSecond": 12000000, "delayNanoseconds": 23000000}' --down '{}'`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return options.refused(options.run(command.Context(), command.OutOrStdout()))
		},
	}
	set := command.Flags()
	set.StringVar(&options.first, "first", "", "the interface where packets go up")
	set.StringVar(&options.second, "second", "", "the interface where packets go down")
	set.StringVar(&options.before, "before", "", "the interface of this network namespace, in place of --first and --second")
	set.StringVar(&options.up, "up", "{}", "the link from the first interface to the second, or from this namespace")
	set.StringVar(&options.down, "down", "{}", "the link from the second interface to the first, or to this namespace")
	set.StringVar(&options.ready, "ready", "", "create this FILE when the link carries packets")
	set.StringVar(&options.terminationLog, "termination-log", "", "file for the reason of a failure")
	set.Uint64Var(&options.seed, "seed", 0, "what decides losses and jitter")
	command.MarkFlagsOneRequired("first", "before")
	command.MarkFlagsMutuallyExclusive("first", "before")
	command.MarkFlagsRequiredTogether("first", "second")
	return command
}

func (o *linkOptions) run(ctx context.Context, out io.Writer) (err error) {
	upward, err := parseModel(o.up, 2*o.seed)
	if err != nil {
		return fmt.Errorf("--up: %w", err)
	}
	downward, err := parseModel(o.down, 2*o.seed+1)
	if err != nil {
		return fmt.Errorf("--down: %w", err)
	}
	ends, err := o.ends()
	defer func() {
		for _, one := range ends {
			err = errors.Join(err, one.Close())
		}
	}()
	if err != nil {
		return err
	}
	if o.ready != "" {
		if err := os.WriteFile(o.ready, nil, 0o644); err != nil {
			return fmt.Errorf("--ready: %w", err)
		}
	}
	pump := link.NewPump(ends[0], ends[1], upward, downward)
	err = pump.Run(ctx)
	counts := map[string]link.Count{}
	counts["up"], counts["down"] = pump.Counts()
	return errors.Join(err, json.NewEncoder(out).Encode(counts))
}

// ends returns the ends of the link that were opened, both if there is no error.
func (o *linkOptions) ends() (opened []link.End, err error) {
	if o.before == "" {
		for _, name := range []string{o.first, o.second} {
			device, err := link.OpenTAP(name)
			if err != nil {
				return opened, err
			}
			opened = append(opened, device)
		}
		return opened, nil
	}
	near, err := link.Insert(o.before)
	if err != nil {
		return nil, err
	}
	for _, device := range []string{near, o.before} {
		wire, err := link.OpenWire(device)
		if err != nil {
			return opened, err
		}
		opened = append(opened, wire)
	}
	return opened, nil
}

// refused writes why there is no link to the termination message.
func (o *linkOptions) refused(err error) error {
	if err == nil || o.terminationLog == "" {
		return err
	}
	return errors.Join(err, contract.WriteTermination(o.terminationLog, &contract.Failure{Reason: "LinkNotPossible", Message: err.Error()}))
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
