package network

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tierbench.io/client/internal/beside"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/pause"
	"tierbench.io/client/internal/tcptrace"
	"tierbench.io/client/internal/usage"
)

const (
	retryPause = 500 * time.Millisecond // before a trial begins again that the server did not take
	// How long clients wait for one another: a pod may have to pull its image. Whoever started them ends those that
	// wait for one that was lost.
	untilStart = 10 * time.Minute
)

// Run runs warm-up trials and then those that options ask for. Trials that fail are reported like others; an error is
// what ends the whole series early: a *contract.Failure, or context.Canceled.
func Run(ctx context.Context, options *Options, report contract.Reporter) error {
	return options.Each(func(number int, warmup bool) error {
		return runTrial(ctx, options, report, number, warmup)
	})
}

func runTrial(ctx context.Context, options *Options, report contract.Reporter, number int, warmup bool) error {
	echoes, histogram, err := ping(ctx, &options.Ping)
	if err != nil {
		return err
	}
	observed := false
	if options.Agent != nil && options.Part == 0 {
		if observed, err = options.Agent.BeginTracing(ctx, options.serverTrace(), options.Streams*options.Parts); err != nil {
			return err
		}
	}
	if err := meet(ctx, options, number, warmup); err != nil {
		return err
	}
	together := time.Now()
	if err := report.Started(number, warmup, together); err != nil {
		return err
	}
	trial, err := load(ctx, options, together)
	if err != nil {
		return err
	}
	trial.Trial, trial.Warmup, trial.Network.Ping = number, warmup, echoes
	if histogram != nil {
		trial.Distributions = &contract.Distributions{Ping: histogram}
	}
	if observed {
		observe(&trial, options.Agent.EndTracing(ctx))
	}
	return report.Ended(trial)
}

// observe adds what the agent beside the server saw.
func observe(trial *contract.Trial, ending *beside.Ending) {
	if ending == nil {
		return
	}
	trial.Server = &ending.ServerSample
	if ending.TCP != nil && trial.Network.Download != nil {
		trial.Network.Download.TCP = ending.TCP
		trial.Traces = append(trial.Traces, contract.Trace{Side: contract.ServerSide, Data: ending.Trace})
	}
}

// meet waits for the other clients, so that all begin at once. Nobody waits at the end: what was measured beside a client
// that was lost is told all the same.
func meet(ctx context.Context, options *Options, number int, warmup bool) error {
	if options.Parts < 2 {
		return nil
	}
	name := fmt.Sprintf("%s-t%d", options.Barrier, number)
	if warmup {
		name = fmt.Sprintf("%s-w%d", options.Barrier, number)
	}
	return options.Agent.Meet(ctx, name, options.Part, options.Parts, untilStart)
}

// load makes the load of one trial; what the server refuses is tried again while it may become ready. Clients that measure
// at once tell how long after their common start theirs began: by the kernel where this side's TCP is traced, for iperf3
// agrees with its server first, over a link that the others may fill already; else by the start of iperf3.
func load(ctx context.Context, options *Options, together time.Time) (contract.Trial, error) {
	for deadline := time.Now().Add(options.Ready); ; {
		started, cpu := time.Now(), usage.ProgramsCPU()
		watched := watch(options)
		seen, err := transmit(ctx, options)
		own := watched()
		var failure *contract.Failure
		switch {
		case err != nil && !errors.As(err, &failure):
			return contract.Trial{}, err
		case failure != nil && mayPass(failure) && time.Now().Before(deadline):
			if err := pause.For(ctx, retryPause); err != nil {
				return contract.Trial{}, context.Canceled
			}
			continue
		}
		trial := contract.Trial{
			Outcome: contract.Completed, StartTime: contract.FormatTime(started), DurationNanoseconds: seen.took.Nanoseconds(),
			Client:  contract.ClientSample{CPUNanoseconds: (usage.ProgramsCPU() - cpu).Nanoseconds()},
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
		return trial, nil
	}
}

// sending is what was seen of TCP at this side; zero if that was not traced.
type sending struct {
	activity *contract.TCPActivity
	traces   []contract.Trace
	began    time.Time
}

// watch samples TCP at this side while it sends, if that is asked for; what it gives ends it.
func watch(options *Options) func() sending {
	if !options.traces() || options.Direction == Download {
		return func() sending { return sending{} }
	}
	recorder := tcptrace.Start(tcptrace.Ports{Remote: map[uint16]bool{options.Port: true}}, options.TraceInterval)
	return func() sending {
		activity, trace := recorder.End(options.Streams)
		if trace == nil {
			return sending{}
		}
		began, _ := recorder.Began()
		return sending{activity, []contract.Trace{{Side: contract.ClientSide, Data: trace.Encode()}}, began}
	}
}
