//go:build linux

package cli

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tierbench.io/client/internal/agent"
	"tierbench.io/client/internal/pinned"
)

func agentCommand() *cobra.Command {
	var address, directory, tokenFile, keyFile, ports, process, gates string
	var port, sample int
	command := &cobra.Command{
		Use:   "agent --token-file FILE --key-file FILE",
		Short: "Sample page cache, disk, CPU and TCP of the node of a server while trials run",
		Long: `Runs in the pod of a server. When a client begins a trial, the agent brings the served file into the cache state
asked for; when the client ends it, the agent tells what node and network did meanwhile. TCP retransmits and segments are
those of the network namespace: with hostNetwork, of the whole node. It speaks TLS with a key that its clients know.`,
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
			key, err := os.ReadFile(keyFile)
			if err != nil {
				return fmt.Errorf("--key-file: %w", err)
			}
			secured, err := pinned.Server(key)
			if err != nil {
				return fmt.Errorf("--key-file %s: %w", keyFile, err)
			}
			options := agent.Options{
				Listen: net.JoinHostPort(address, strconv.Itoa(port)), TLS: secured, Token: strings.TrimSpace(string(token)),
				Directory: directory, Process: process, Ports: numbers, Gates: gates,
				Interval: time.Duration(max(sample, 1)) * time.Millisecond,
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
	set.StringVar(&address, "address", "", "IP address to answer at (all)")
	set.IntVar(&port, "port", 8090, "port to answer at")
	set.StringVar(&directory, "directory", "/data", "where the served files are; empty if there are none")
	set.StringVar(&process, "process", "", "name of the server's process, to tell what CPU it takes (pods must share their processes)")
	set.StringVar(&tokenFile, "token-file", "", "file with the token that clients must show")
	set.StringVar(&keyFile, "key-file", "", "file with the private key of its TLS, PKCS #8 as PEM")
	set.StringVar(&gates, "gates", "", "folder with the sockets of servers that are started by tierbench-client gate")
	set.StringVar(&ports, "ports", "8080", "the server's ports, with commas between")
	set.IntVar(&sample, "sample-milliseconds", 100, "time between samples of round-trip times")
	for _, flag := range []string{"token-file", "key-file"} {
		if err := command.MarkFlagRequired(flag); err != nil {
			panic(err)
		}
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
