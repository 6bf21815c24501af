package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tierbench.io/client/internal/agent"
)

func agentCommand() *cobra.Command {
	var listen, directory, tokenFile, ports, process string
	var sample int
	command := &cobra.Command{
		Use:   "agent --token-file FILE",
		Short: "Sample page cache, disk, CPU and TCP beside a server, while a client's trials run",
		Long: `Runs in the pod of a server. When a client begins a trial, the agent brings the served file into the cache state
asked for; when the client ends it, the agent tells what node and network did meanwhile. TCP retransmits and segments are
those of the network namespace: with hostNetwork, of the whole node.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			token, err := os.ReadFile(tokenFile)
			if err != nil {
				return fmt.Errorf("--token-file: %w", err)
			}
			numbers, err := parsePorts(ports)
			if err != nil {
				return err
			}
			options := agent.Options{
				Listen: listen, Directory: directory, Token: strings.TrimSpace(string(token)), Ports: numbers,
				Process: process, Interval: time.Duration(max(sample, 1)) * time.Millisecond,
			}
			if options.Token == "" {
				return fmt.Errorf("--token-file %s is empty", tokenFile)
			}
			server, err := agent.New(options)
			if err != nil {
				return err
			}
			return server.Serve(command.Context())
		},
	}
	set := command.Flags()
	set.StringVar(&listen, "listen", ":8090", "address to answer at")
	set.StringVar(&directory, "directory", "/data", "where the served files are; empty if there are none")
	set.StringVar(&process, "process", "", "name of the server's process, to tell what CPU it takes (pods must share their processes)")
	set.StringVar(&tokenFile, "token-file", "", "file with the token that clients must show")
	set.StringVar(&ports, "ports", "8080", "the server's ports, with commas between")
	set.IntVar(&sample, "sample-milliseconds", 100, "time between samples of round-trip times")
	if err := command.MarkFlagRequired("token-file"); err != nil {
		panic(err)
	}
	return command
}

func parsePorts(text string) (map[uint16]bool, error) {
	ports := map[uint16]bool{}
	if text == "" {
		return ports, nil
	}
	for _, word := range strings.Split(text, ",") {
		number, err := strconv.ParseUint(strings.TrimSpace(word), 10, 16)
		if err != nil {
			return nil, fmt.Errorf("--ports is %q: write port numbers with commas between, as in 8080,8443", text)
		}
		ports[uint16(number)] = true
	}
	return ports, nil
}
