package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"tierbench.io/client/internal/agentclient"
	"tierbench.io/client/internal/computer"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/rusage"
	"tierbench.io/client/internal/tcptrace"
	"tierbench.io/client/internal/wait"
)

const (
	retryPause = 500 * time.Millisecond // before a trial that the server refused begins again
	// The time that clients wait for one another. A pod may have to pull its image. The operator ends clients that wait for a
	// lost client.
	untilStart = 10 * time.Minute
)

// Target is an iperf3 server, and a host that answers ping.
type Target struct{ Options *Options }

// Prepare resolves names if networks are refused, because iperf3 and ping would resolve them separately. It waits for the host to
// answer ping. It does not wait for the server, because iperf3 is retried while the server is not ready.
func (t *Target) Prepare(ctx context.Context) error {
	if len(t.Options.Refused) > 0 {
		if err := t.resolve(ctx); err != nil {
			return err
		}
	}
	return awaitEcho(ctx, &t.Options.Ping)
}

func (t *Target) resolve(ctx context.Context) error {
	for _, host := range []*string{&t.Options.Host, &t.Options.Ping.Host} {
		address, err := t.Options.Refused.Resolve(ctx, *host)
		if err != nil {
			return err
		}
		*host = address
	}
	return nil
}

// Trial runs ping and iperf3 once.
func (t *Target) Trial(ctx context.Context, report contract.Reporter, number int, warmup bool) error {
	options, began := t.Options, time.Now()
	idle, err := pingTogether(ctx, options, number, warmup)
	var unanswered *contract.Failure
	if err != nil && !(errors.As(err, &unanswered) && unanswered.Reason == pingFailed) {
		return err
	}
	gate := &gate{options: options}
	if err := gate.open(ctx); err != nil {
		return err
	}
	defer gate.shut()
	observed := false
	if options.Agent != nil && options.Part == 0 {
		if observed, err = options.Agent.BeginTracing(ctx, options.serverTrace(), options.Streams*options.Parts); err != nil {
			return err
		}
	}
	meter := computer.Own().Watch()
	if err := meet(ctx, options, "", number, warmup); err != nil {
		return err
	}
	together := time.Now()
	if err := report.Started(number, warmup, together); err != nil {
		return err
	}
	if unanswered != nil {
		return report.Ended(withoutLoad(unanswered, number, warmup, began))
	}
	trial, seen, loaded, err := load(ctx, options, gate, together)
	if err != nil {
		return err
	}
	trial.Trial, trial.Warmup = number, warmup
	idle.addIdle(&trial)
	trial.Client.Computer = meter.End(computer.Route(net.JoinHostPort(options.Host, strconv.Itoa(int(options.Port)))))
	useCongestion(trial.Client.Computer, seen.clientCongestion)
	if observed {
		observe(&trial, options.Agent.EndTracing(ctx), seen)
	}
	if err := loaded.end(ctx, &trial, seen.took); err != nil {
		return err
	}
	return report.Ended(trial)
}

// pingTogether sends echo requests while no client makes load. Each client waits at one barrier after its last load, and at
// another one before the next load.
func pingTogether(ctx context.Context, options *Options, number int, warmup bool) (pinged, error) {
	if options.Ping.Count == 0 {
		return pinged{}, nil
	}
	if err := meet(ctx, options, "ping-", number, warmup); err != nil {
		return pinged{}, err
	}
	return ping(ctx, &options.Ping)
}

// gate lets the server listen while it is open. A server without an agent always listens. Each of several simultaneous clients
// has its own server.
type gate struct {
	options *Options
	close   func()
}

func (g *gate) open(ctx context.Context) (err error) {
	if g.options.Agent != nil {
		g.close, err = g.options.Agent.Open(ctx, g.options.Part)
	}
	return err
}

func (g *gate) shut() {
	if g.close != nil {
		g.close()
		g.close = nil
	}
}

// reopen restarts the server, which ends the connections of other clients.
func (g *gate) reopen(ctx context.Context) error {
	g.shut()
	return g.open(ctx)
}

// withoutLoad returns a trial whose ping has failed.
func withoutLoad(failure *contract.Failure, number int, warmup bool, began time.Time) contract.Trial {
	return contract.Trial{
		Trial: number, Warmup: warmup, Outcome: contract.Failed, Failure: failure, StartTime: contract.FormatTime(began),
		DurationNanoseconds: time.Since(began).Nanoseconds(), Network: &contract.Network{},
	}
}

// observe adds what the agent of the server measured. The server runs the same iperf3, with as many threads.
func observe(trial *contract.Trial, ending *agentclient.Ending, seen traffic) {
	if ending == nil {
		return
	}
	trial.Server = &ending.ServerSample
	if limit := trial.Server.CPULimitMillicores; limit != nil && seen.threads > 0 {
		*limit = withThreads(*limit, seen.threads)
	}
	useCongestion(trial.Server.Computer, seen.serverCongestion)
	if ending.TCP != nil && trial.Network.Download != nil {
		trial.Network.Download.TCP = ending.TCP
		trial.Traces = append(trial.Traces, contract.Trace{Side: contract.ServerSide, Data: ending.Trace})
	}
}

// useCongestion records the algorithm of the sockets. A route or an option may have replaced the kernel's default.
func useCongestion(of *contract.Computer, used string) {
	if of != nil && used != "" {
		of.CongestionControl = used
	}
}

// meet waits for the other clients, so that all begin together. A trial is reported before its client waits again, so its results
// survive the loss of another client.
func meet(ctx context.Context, options *Options, before string, number int, warmup bool) error {
	if options.Parts < 2 {
		return nil
	}
	kind := "t"
	if warmup {
		kind = "w"
	}
	name := fmt.Sprintf("%s-%s%s%d", options.Barrier, before, kind, number)
	return options.Agent.Meet(ctx, name, options.Part, options.Parts, untilStart)
}

// load makes the load of one trial, with echo requests during it. It retries while the server may become ready. Simultaneous
// clients report how long after the common start their load began. If TCP is traced at this side, the kernel knows it. Otherwise
// it is the start of iperf3, which first negotiates with its server over a link that others may already fill.
func load(ctx context.Context, options *Options, gate *gate, together time.Time) (contract.Trial, traffic, *loadedPing, error) {
	for deadline := time.Now().Add(options.Ready); ; {
		started, cpu := time.Now(), rusage.ProgramsCPU()
		watched, pinging := watch(options), pingUnderLoad(ctx, options)
		seen, err := transmit(ctx, options)
		own := watched()
		if err != nil {
			pinging.abandon()
			pinging = nil
		}
		var failure *contract.Failure
		switch {
		case err != nil && !errors.As(err, &failure):
			return contract.Trial{}, traffic{}, nil, err
		case failure != nil && mayPass(failure) && time.Now().Before(deadline):
			if err := again(ctx, gate, failure); err != nil {
				return contract.Trial{}, traffic{}, nil, err
			}
			continue
		}
		trial := contract.Trial{
			Outcome: contract.Completed, StartTime: contract.FormatTime(started), DurationNanoseconds: seen.took.Nanoseconds(),
			Client: contract.ClientSample{
				CPUNanoseconds:     (rusage.ProgramsCPU() - cpu).Nanoseconds(),
				CPULimitMillicores: withThreads(computer.Own().CPULimit(), seen.threads),
			},
			Network: &contract.Network{Upload: seen.upload, Download: seen.download}, Traces: own.traces,
		}
		if seen.upload != nil {
			seen.upload.TCP = own.activity
		}
		if options.Parts > 1 {
			began := started
			if !own.began.IsZero() {
				began = own.began
			}
			after := began.Sub(together).Nanoseconds()
			trial.Network.StartNanoseconds = &after
		}
		if failure != nil {
			trial.Outcome, trial.Failure, trial.DurationNanoseconds = contract.Failed, failure, time.Since(started).Nanoseconds()
		}
		return trial, seen, pinging, nil
	}
}

// again waits until the server may take the trial.
func again(ctx context.Context, gate *gate, failure *contract.Failure) error {
	if err := wait.For(ctx, retryPause); err != nil {
		return context.Canceled
	}
	if failure.Reason == serverBusy {
		return gate.reopen(ctx)
	}
	return nil
}

// sending is what the trace of TCP at this side shows. It is zero without a trace.
type sending struct {
	activity *contract.TCPActivity
	traces   []contract.Trace
	began    time.Time
}

// watch samples TCP at this side while it sends, if requested. The returned function stops sampling.
func watch(options *Options) func() sending {
	if !options.traces() || options.Direction == Download {
		return func() sending { return sending{} }
	}
	recorder := tcptrace.Start(tcptrace.Ports{Remote: map[uint16]bool{options.Port: true}}, options.Streams, options.TraceInterval)
	return func() sending {
		activity, trace := recorder.End()
		if trace == nil {
			return sending{}
		}
		began, _ := recorder.Began()
		return sending{activity, []contract.Trace{{Side: contract.ClientSide, Data: trace.Encode()}}, began}
	}
}
