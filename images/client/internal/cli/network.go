package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tierbench.io/client/internal/agentclient"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/network"
)

const mostStreams = 128 // iperf3's own limit

type networkFlags struct {
	ending
	seriesFlags
	egressFlags
	server, pingHost                                                          []string
	protocol, direction, congestion, barrier                                  string
	streams, duration, rate, ready, count, interval, size, part, parts, trace int
	underLoad                                                                 bool
}

func networkCommand() *cobra.Command {
	flags := &networkFlags{}
	command := &cobra.Command{
		Use:   "network --server HOST:PORT",
		Short: "Measure a network with iperf3 and ping, trial after trial",
		Long: `Runs ping and then iperf3 against an iperf3 server, trial after trial, and says what they found. Both programs must be
installed. Throughput is what the receiver got.`,
		Example: "  tierbench-client network --server server:5201 --direction Download --duration-seconds 10 --trials 1-10",
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return runNetwork(command.Context(), flags) },
	}
	flags.add(command.Flags())
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return flags.refuse(fmt.Errorf("%w: see tierbench-client network --help", err))
	})
	return command
}

func (f *networkFlags) add(set *pflag.FlagSet) {
	set.StringArrayVar(&f.server, "server", nil, "the iperf3 server, HOST:PORT; again for each target")
	set.StringVar(&f.protocol, "protocol", network.TCP, "TCP or UDP")
	set.StringVar(&f.direction, "direction", network.Upload, "Upload, Download or Bidirectional")
	set.IntVar(&f.streams, "streams", 1, "connections that share the load, in each direction")
	set.StringVar(&f.congestion, "congestion-control", "", "TCP's algorithm at both ends, as in cubic or bbr (what their kernels take)")
	set.IntVar(&f.duration, "duration-seconds", 10, "how long the load of a trial lasts")
	set.IntVar(&f.rate, "kilobits-per-second", 0, "of UDP: payload a second of each direction, all streams together")
	set.IntVar(&f.ready, "ready-milliseconds", 30000, "how long the server may refuse a trial, or be busy, before the trial has failed")
	set.StringArrayVar(&f.pingHost, "ping-host", nil, "where echo requests go (the server's host); again for each target")
	set.IntVar(&f.count, "ping-count", 10, "echo requests before each load; 0 for none")
	set.IntVar(&f.interval, "ping-interval-milliseconds", 200, "from one to the next")
	set.IntVar(&f.size, "ping-size", 56, "bytes of payload in each")
	set.BoolVar(&f.underLoad, "ping-under-load", false, "send as many echo requests during each load, too")
	set.StringVar(&f.barrier, "barrier", "", "name of the barrier at which clients meet that measure at once")
	set.IntVar(&f.part, "part", 0, "number of this client among them, from 0")
	set.IntVar(&f.parts, "parts", 1, "how many there are")
	set.IntVar(&f.trace, "trace-milliseconds", 0, "time between samples of TCP at the sending side; 0 for no trace")
	f.egressFlags.add(set)
	f.seriesFlags.add(set)
	f.ending.add(set)
}

func runNetwork(ctx context.Context, flags *networkFlags) error {
	if err := errors.Join(flags.check(), flags.ending.check()); err != nil {
		return flags.refuse(err)
	}
	series, err := flags.series(max(len(flags.server), 1), flags.target)
	if err != nil {
		return flags.refuse(err)
	}
	return flags.run(ctx, contract.NewTextReport(os.Stdout, network.Words), series)
}

func (f *networkFlags) target(index int, agent *agentclient.Agent) (contract.Target, error) {
	host, digits, err := net.SplitHostPort(of(f.server, index))
	port, noPort := strconv.ParseUint(digits, 10, 16)
	if err != nil || host == "" || noPort != nil {
		return nil, fmt.Errorf("--server is %q: write HOST:PORT", of(f.server, index))
	}
	refused, err := f.refusedNetworks()
	if err != nil {
		return nil, err
	}
	pingHost := of(f.pingHost, index)
	if pingHost == "" {
		pingHost = host
	}
	return &network.Target{Options: &network.Options{
		Host: host, Port: uint16(port), Refused: refused, Protocol: f.protocol, Direction: f.direction,
		Streams: f.streams, Duration: time.Duration(f.duration) * time.Second, BitsPerSecond: int64(f.rate) * 1000,
		Congestion: f.congestion, Ready: time.Duration(f.ready) * time.Millisecond, Agent: agent,
		TraceInterval: time.Duration(f.trace) * time.Millisecond, Barrier: f.barrier, Part: f.part, Parts: f.parts,
		Ping: network.Ping{Host: pingHost, Count: f.count, Interval: time.Duration(f.interval) * time.Millisecond, Size: f.size, UnderLoad: f.underLoad},
	}}, nil
}

func (f *networkFlags) check() error {
	if err := perTarget("ping-host", len(f.pingHost), max(len(f.server), 1)); err != nil {
		return err
	}
	switch {
	case f.protocol != network.TCP && f.protocol != network.UDP:
		return fmt.Errorf("--protocol is %q: write TCP or UDP", f.protocol)
	case f.direction != network.Upload && f.direction != network.Download && f.direction != network.Bidirectional:
		return fmt.Errorf("--direction is %q: write Upload, Download or Bidirectional", f.direction)
	case f.protocol == network.UDP && f.rate < 1:
		return errors.New("--protocol UDP needs --kilobits-per-second: it does not find the network's rate by itself")
	case f.protocol == network.UDP && f.congestion != "":
		return errors.New("--congestion-control is of TCP alone: leave it out with --protocol UDP")
	case f.streams < 1 || f.streams > mostStreams:
		return fmt.Errorf("--streams is %d: write 1 to %d", f.streams, mostStreams)
	case f.duration < 1, f.interval < 1, f.size < 1:
		return errors.New("--duration-seconds, --ping-interval-milliseconds and --ping-size must be at least 1")
	case f.parts < 1 || f.part < 0 || f.part >= f.parts:
		return fmt.Errorf("--part is %d of --parts %d: parts count from 0", f.part, f.parts)
	case f.parts > 1 && (len(f.agent) == 0 || f.barrier == ""):
		return errors.New("--parts above 1 needs --agent and --barrier, where they meet")
	case f.ready < 0, f.count < 0, f.trace < 0:
		return errors.New("--ready-milliseconds, --ping-count and --trace-milliseconds cannot be negative")
	}
	return nil
}
