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
	"tierbench.io/client/internal/usage"
)

// How long parts wait for one another. A pod may have to pull its image, and a load takes as long as it takes: whoever started
// the parts ends those that wait for one that was lost.
const (
	untilStart = 10 * time.Minute
	untilEnd   = 24 * time.Hour
)

// runTrial runs one trial and reports it. A part that fails meets the others all the same, so that they need not wait.
func runTrial(ctx context.Context, options *Options, report contract.Reporter, number int, warmup bool) error {
	name := fmt.Sprintf("t%d", number)
	if warmup {
		name = fmt.Sprintf("w%d", number)
	}
	if err := report.Started(number, warmup, time.Now()); err != nil {
		return err
	}
	trial, failed, err := measure(ctx, options, name)
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

func meet(ctx context.Context, options *Options, name string, patience time.Duration) error {
	if options.Parts < 2 {
		return nil
	}
	return options.Agent.Meet(ctx, options.Barrier+"-"+name, options.Part, options.Parts, patience)
}

// measure connects all pairs, waits for the other parts, makes the load, and says what it saw. `failed` is what the trial
// failed by, err what ends the series.
//
// What client, server and computer did is that of the load alone: sampling begins when all parts are connected, and ends
// before anything is closed.
func measure(ctx context.Context, options *Options, name string) (trial contract.Trial, failed, err error) {
	started := time.Now()
	trial = contract.Trial{Outcome: contract.Completed, StartTime: contract.FormatTime(started)}
	pairs, failed := connectAll(ctx, options, name, started)
	defer closeAll(ctx, pairs)
	connected := time.Since(started)
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
	meter, begun, cpu := computer.Own().Watch(), time.Since(started), usage.CPU()
	if failed == nil && options.Role != Echo {
		failed = loadAll(ctx, pairs)
	}
	spent := usage.CPU() - cpu
	if err = meet(ctx, options, name+"-end", untilEnd); err != nil {
		return trial, failed, err
	}
	if options.Role == Echo { // its load is over when the publishers' is
		spent = usage.CPU() - cpu
	}
	if observed {
		trial.Server = options.Agent.End(ctx)
	}
	over := transport(pairs)
	trial.Client = contract.ClientSample{
		CPUNanoseconds: spent.Nanoseconds(), CPULimitMillicores: cpuLimit(), Tuning: options.Tuning, Computer: meter.End(over.Local),
	}
	if over.Congestion != "" {
		trial.Client.Computer.CongestionControl = over.Congestion
	}
	closeAll(ctx, pairs)
	summarize(&trial, options, pairs, begun, connected)
	if failed == nil {
		failed = nothing(options.Role, trial.Exchange)
	}
	return trial, failed, nil
}

// nothing is why a trial failed that nothing came of.
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

// observe begins the agent's sampling, if this part is the one that does.
func observe(ctx context.Context, options *Options) (bool, error) {
	if options.Agent == nil || options.Part > 0 {
		return false, nil
	}
	return options.Agent.Begin(ctx, "", "")
}

// transport is what the load goes over.
func transport(pairs []*pair) (over Transport) {
	for _, one := range pairs {
		if one != nil && len(one.connections) > 0 {
			return one.connections[0].Statistics().Transport
		}
	}
	return over
}

// cpuLimit is what this program may use of CPUs, in thousandths of one: by quotas, and by the Go scheduler.
func cpuLimit() int64 {
	scheduler := int64(runtime.GOMAXPROCS(0)) * 1000
	if limit := computer.Own().CPULimit(); limit > 0 {
		return min(limit, scheduler)
	}
	return scheduler
}

func connectAll(ctx context.Context, options *Options, name string, started time.Time) ([]*pair, error) {
	pairs := make([]*pair, options.Pairs)
	errs := make([]error, options.Pairs)
	var group sync.WaitGroup
	for index := range pairs {
		group.Go(func() { pairs[index], errs[index] = connect(ctx, options, options.FirstPair+index, name, started) })
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
	within(ctx, farewell, group.Wait)
}

func loadAll(ctx context.Context, pairs []*pair) error {
	errs := make([]error, len(pairs))
	var group sync.WaitGroup
	for index, one := range pairs {
		group.Go(func() { errs[index] = one.load(ctx) })
	}
	if !within(ctx, 0, group.Wait) {
		return ctx.Err()
	}
	return errors.Join(errs...)
}

// summarize adds up what the pairs saw. Their times count from when the first began to connect: `connected` all were, the load
// had `begun`.
func summarize(trial *contract.Trial, options *Options, pairs []*pair, begun, connected time.Duration) {
	total := &contract.Exchange{ErrorCauses: map[string]int64{}}
	if options.Role != Alone {
		total.Arrivals = &contract.Arrivals{}
	}
	distributions := &contract.Distributions{}
	var last, connects, handshakes time.Duration
	connections := 0
	var all []*series
	for _, one := range pairs {
		if one == nil {
			continue
		}
		counts, end := one.ledger.close()
		last = max(last, end)
		add(total, &counts)
		total.Pairs++
		total.SentBytes += one.plain
		total.EncodedBytes += one.encoded
		addCosts(total, one)
		for _, connection := range one.connections {
			statistics := connection.Statistics()
			connects, handshakes, connections = connects+statistics.Connect, handshakes+statistics.TLS, connections+1
			addConnection(total, statistics)
		}
		merge(distributions, one.ledger.distributions())
		all = append(all, one.ledger.series)
	}
	total.Cipher = transport(pairs).Cipher
	before, steady := warmUp(all)
	total.Steady = steady
	for _, one := range all {
		total.Discarded += one.discard(before)
		for _, segment := range one.segments {
			merge(distributions, segment)
		}
	}
	if connections > 0 {
		total.ConnectNanoseconds = connects.Nanoseconds() / int64(connections)
		total.TLSNanoseconds = handshakes.Nanoseconds() / int64(connections)
	}
	load := max(last-begun, 0)
	trial.DurationNanoseconds = load.Nanoseconds()
	total.SessionNanoseconds = (connected + load).Nanoseconds()
	trial.Exchange, trial.Distributions = total, distributions
}

func add(total, counts *contract.Exchange) {
	total.Sent += counts.Sent
	total.Acknowledged += counts.Acknowledged
	total.AcknowledgedBytes += counts.AcknowledgedBytes
	total.LateSends += counts.LateSends
	total.Unsent += counts.Unsent
	if total.Arrivals != nil {
		addArrivals(total.Arrivals, counts.Arrivals)
	}
	total.Errors += counts.Errors
	for cause, number := range counts.ErrorCauses {
		total.ErrorCauses[cause] += number
	}
}

func addArrivals(total, counts *contract.Arrivals) {
	total.Received += counts.Received
	total.Lost += counts.Lost
	total.AcknowledgedLost += counts.AcknowledgedLost
	total.Duplicated += counts.Duplicated
	total.OutOfOrder += counts.OutOfOrder
	total.ReceivedBytes += counts.ReceivedBytes
}

func addCosts(total *contract.Exchange, one *pair) {
	encoding, decoding := one.encoder.Spent(), one.decoder.Spent()
	total.CompressNanoseconds += encoding.Compress.Nanoseconds()
	total.EncryptNanoseconds += encoding.Encrypt.Nanoseconds()
	if total.Arrivals == nil {
		return
	}
	total.DecryptNanoseconds += decoding.Decrypt.Nanoseconds()
	total.DecompressNanoseconds += decoding.Decompress.Nanoseconds()
}

func addConnection(total *contract.Exchange, statistics Statistics) {
	total.Reconnects += statistics.Reconnects
	total.Retried += statistics.Resent
	total.Batches += statistics.Batches
	total.BatchBytes += statistics.BatchBytes
	total.WireSentBytes += statistics.Wire.SentBytes
	total.WireReceivedBytes += statistics.Wire.ReceivedBytes
	total.TCPRetransmits += statistics.Wire.Retransmits
	for cause, number := range statistics.Errors {
		total.Errors += number
		total.ErrorCauses[cause] += number
	}
}
