//go:build linux

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tierbench.io/client/internal/check"
	"tierbench.io/client/internal/contract"
)

func checkCommand() *cobra.Command {
	var listen, terminationLog string
	var peers []string
	var each, timeout int
	options := check.Options{Now: time.Now}
	command := &cobra.Command{
		Use:   "check",
		Short: "Find out what a pod on this node can do, or answer others that do",
		Long: `Prints one line of JSON: clock, memory cgroup, disk, whether the kernel allows echo requests, and which peers answer by TCP, UDP,
ping, by their Service, by its port on their node and by its name. With --listen it answers such questions until it ends.`,
		Example: `  tierbench-client check --listen 10.1.0.7:8091
  tierbench-client check --peer '{"name": "cloud", "address": "10.1.0.7:8091", "service": "10.96.0.9:8091", "host": "cloud.default.svc"}'`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if listen != "" {
				return check.Answer(command.Context(), listen)
			}
			var err error
			if options.Peers, err = parsePeers(peers); err != nil {
				return err
			}
			options.Each, options.Timeout = seconds(each), seconds(timeout)
			return runCheck(command.Context(), options, terminationLog)
		},
	}
	set := command.Flags()
	set.StringVar(&listen, "listen", "", "answer at this HOST:PORT")
	set.StringArrayVar(&peers, "peer", nil, "a pod that answers, as JSON: name, address, service, nodePort, host; can be repeated")
	set.StringVar(&options.Collector, "collector", "", "HOST:PORT where the operator takes lines")
	set.StringVar(&options.Directory, "directory", "/", "the directory whose disk is looked at")
	set.IntVar(&each, "attempt-seconds", 3, "time of one attempt to reach something")
	set.IntVar(&timeout, "seconds", 10, "time of all attempts")
	set.StringVar(&terminationLog, "termination-log", "", "file for the same line (a container's termination message)")
	return command
}

// runCheck prints the report, and writes it to the termination message for readers without access to the log.
func runCheck(ctx context.Context, options check.Options, terminationLog string) error {
	report := check.Run(ctx, options)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	line, err := report.Line()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(line)
	return errors.Join(err, contract.WriteTermination(terminationLog, report))
}

func parsePeers(texts []string) ([]check.Peer, error) {
	if len(texts) > check.MostPeers {
		return nil, fmt.Errorf("there are %d --peer: at most %d fit into a termination message", len(texts), check.MostPeers)
	}
	peers := make([]check.Peer, len(texts))
	for index, text := range texts {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&peers[index]); err != nil {
			return nil, fmt.Errorf("--peer %q: %w", text, err)
		}
		if name := peers[index].Name; name == "" || len(name) > 63 {
			return nil, fmt.Errorf("--peer %q: write a name of at most 63 characters", text)
		}
	}
	return peers, nil
}
