package broker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"tierbench.io/client/internal/computer"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/rusage"
)

// The time that parts wait for each other. A pod may have to pull its image, and a load has no time limit. The operator ends
// parts that wait for a lost part.
const (
	untilStart = 10 * time.Minute
	untilEnd   = 24 * time.Hour
)

// Trial runs and reports one trial. A part that fails still meets the others, so that they need not wait.
func (t *Target) Trial(ctx context.Context, report contract.Reporter, number int, warmup bool) error {
	name := fmt.Sprintf("t%d", number)
	if warmup {
		name = fmt.Sprintf("w%d", number)
	}
	if err := report.Started(number, warmup, time.Now()); err != nil {
		return err
	}
	trial, failed, err := t.measure(ctx, name)
	switch {
	case ctx.Err() != nil:
		return context.Canceled
	case err != nil:
		return err
	case failed != nil:
		trial.Outcome, trial.Failure = contract.Failed, asFailure(failed)
	}
	trial.Trial, trial.Warmup = number, warmup
	return report.Ended(trial)
}

func asFailure(err error) *contract.Failure {
	var failure *contract.Failure
	if errors.As(err, &failure) {
		return failure
	}
	return &contract.Failure{Reason: "BrokerUnreachable", Message: err.Error() + ": see the broker's log"}
}

func meet(ctx context.Context, options *Options, name string, timeout time.Duration) error {
	if options.Parts < 2 {
		return nil
	}
	return options.Agent.Meet(ctx, options.Barrier+"-"+name, options.Part, options.Parts, timeout)
}

// measure connects all pairs, waits for the other parts, makes the load, and returns the trial. `failed` is why the
// trial failed, err is what ends the series.
//
// Samples of client, server and computer cover only the load: sampling begins when all parts are connected, and ends
// before anything is closed.
func (t *Target) measure(ctx context.Context, name string) (trial contract.Trial, failed, err error) {
	options, started := t.Options, time.Now()
	trial = contract.Trial{Outcome: contract.Completed, StartTime: contract.FormatTime(started)}
	pairs, fresh, failed := t.open(ctx, name, started)
	defer func() { t.leave(ctx, pairs, failed == nil && err == nil) }()
	connected, setup := time.Since(started), traffic(pairs)
	if met := meet(ctx, options, name, options.Ready+untilStart); failed == nil {
		failed = met
	}
	observed, err := observe(ctx, options)
	if err != nil {
		return trial, failed, err
	}
	if met := meet(ctx, options, name+"-begin", untilStart); failed == nil {
		failed = met
	}
	before := traffic(pairs)
	meter, begun, cpu := computer.Own().Watch(), time.Since(started), options.cpu()
	if failed == nil && options.Role != Echo {
		failed = loadAll(ctx, pairs)
	}
	if ctx.Err() != nil { // the pairs may still send, so their counts belong to no trial
		return trial, failed, context.Canceled
	}
	spent, after := options.cpu()-cpu, traffic(pairs)
	if err = meet(ctx, options, name+"-end", untilEnd); err != nil {
		return trial, failed, err
	}
	if options.Role == Echo { // its load ends with that of the publishers
		spent, after = options.cpu()-cpu, traffic(pairs)
		failed = errors.Join(failed, ended(pairs))
	}
	if observed {
		trial.Server = options.Agent.End(ctx)
	}
	over := transport(pairs)
	trial.Client = contract.ClientSample{
		CPUNanoseconds: max(spent, 0).Nanoseconds(), CPULimitMillicores: options.cpuLimit(), Tuning: options.Tuning, Computer: meter.End(over.Local),
	}
	if over.Congestion != "" {
		trial.Client.Computer.CongestionControl = over.Congestion
	}
	t.finish(ctx, pairs)
	took := &course{fresh: fresh, connected: connected, begun: begun, setup: setup, load: after.Since(before)}
	summarize(&trial, options.Role, pairs, took)
	if failed == nil {
		failed = nothing(options.Role, trial.Exchange)
	}
	return trial, failed, nil
}

// nothing returns why a trial without any result failed.
func nothing(role Role, exchange *contract.Exchange) error {
	switch {
	case role == Echo:
	case role == Alone && exchange.Acknowledged == 0:
		return &contract.Failure{Reason: "NothingAcknowledged", Message: "the broker acknowledged no message: see its log, and what its user may write"}
	case role != Alone && exchange.Received == 0:
		return &contract.Failure{Reason: "NothingDelivered", Message: "no message came back: see the broker's log, and what its user may read and write"}
	}
	return nil
}

// observe begins the agent's sampling, if this part is responsible for it.
func observe(ctx context.Context, options *Options) (bool, error) {
	if options.Agent == nil || options.Part > 0 {
		return false, nil
	}
	return options.Agent.Begin(ctx, "", "")
}

// transport returns what the load uses below the protocol of the broker.
func transport(pairs []*pair) (over Transport) {
	for _, one := range pairs {
		if one != nil && len(one.connections) > 0 {
			return one.connections[0].Statistics().Transport
		}
	}
	return over
}

// cpu returns the CPU time of the program that makes the load.
func (o *Options) cpu() time.Duration {
	if o.Engine != nil {
		return o.Engine.CPU()
	}
	return rusage.CPU()
}

// cpuLimit returns what that program can use of the CPUs, in thousandths: the minimum of quotas and of its threads.
func (o *Options) cpuLimit() int64 {
	processors := runtime.GOMAXPROCS(0)
	if o.Engine != nil {
		processors = o.Engine.Processors()
	}
	threads := int64(processors) * 1000
	if limit := computer.Own().CPULimit(); limit > 0 {
		return min(limit, threads)
	}
	return threads
}

func connectAll(ctx context.Context, options *Options, name string, first uint64, started time.Time) ([]*pair, error) {
	pairs := make([]*pair, options.Pairs)
	errs := make([]error, options.Pairs)
	var group sync.WaitGroup
	for index := range pairs {
		group.Go(func() {
			pairs[index], errs[index] = connect(ctx, options, options.FirstPair+index, name, first, started)
		})
	}
	group.Wait()
	return pairs, errors.Join(errs...)
}

func closeAll(ctx context.Context, pairs []*pair) {
	var group sync.WaitGroup
	for _, one := range pairs {
		if one != nil {
			group.Go(one.close)
		}
	}
	within(ctx, closeTimeout, group.Wait)
}

func loadAll(ctx context.Context, pairs []*pair) error {
	var err error
	if !within(ctx, 0, func() { err = each(pairs, func(one *pair) error { return one.load(ctx) }) }) {
		return ctx.Err()
	}
	return err
}

// each calls a function for all at once.
func each[Of any](all []Of, do func(Of) error) error {
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for index, one := range all {
		group.Go(func() { errs[index] = do(one) })
	}
	group.Wait()
	return errors.Join(errs...)
}
