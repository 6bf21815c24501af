package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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
	observed := false
	if options.Agent != nil && options.Part == 0 {
		var err error
		if observed, err = options.Agent.Begin(ctx, "", ""); err != nil {
			return err
		}
	}
	if err := report.Started(number, warmup, time.Now()); err != nil {
		return err
	}
	trial, err := measure(ctx, options, name)
	if ctx.Err() != nil {
		return context.Canceled
	}
	if err != nil {
		trial.Outcome = contract.Failed
		trial.Failure = asFailure(err)
	}
	if err := meet(ctx, options, name+"-end", untilEnd); err != nil {
		return err
	}
	trial.Trial, trial.Warmup = number, warmup
	if observed {
		trial.Server = options.Agent.End(ctx)
	}
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

// measure connects all pairs, waits for the other parts, makes the load, and says what it saw.
func measure(ctx context.Context, options *Options, name string) (contract.Trial, error) {
	started := time.Now()
	trial := contract.Trial{Outcome: contract.Completed, StartTime: contract.FormatTime(started)}
	pairs, err := connectAll(ctx, options, name, started)
	if met := meet(ctx, options, name, options.Ready+untilStart); err == nil {
		err = met
	}
	begun, cpu := time.Since(started), usage.CPU()
	if err == nil && options.Role != Echo {
		err = loadAll(ctx, pairs)
	}
	if options.Role == Echo {
		// What the publishers do is over when they come to the end's barrier.
		if met := meet(ctx, options, name+"-end", untilEnd); err == nil {
			err = met
		}
	}
	trial.Client = contract.ClientSample{
		CPUNanoseconds:     (usage.CPU() - cpu).Nanoseconds(),
		CPULimitMillicores: cpuLimit(ownQuota),
	}
	closeAll(ctx, pairs)
	if ctx.Err() != nil {
		return trial, context.Canceled
	}
	summarize(&trial, options, pairs, begun)
	if err == nil && options.Role != Echo && trial.Exchange.Received == 0 {
		err = &contract.Failure{Reason: "NothingDelivered", Message: "no message came back: see the broker's log, and what its user may read and write"}
	}
	return trial, err
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

func summarize(trial *contract.Trial, options *Options, pairs []*pair, begun time.Duration) {
	total := &contract.Exchange{ErrorCauses: map[string]int64{}}
	distributions := &contract.Distributions{}
	var last, connects, handshakes time.Duration
	connections := 0
	for _, one := range pairs {
		if one == nil {
			continue
		}
		counts, end := one.ledger.close()
		last = max(last, end)
		add(total, &counts)
		total.Pairs++
		total.SentBytes += counts.Sent * int64(len(options.Content))
		total.EncodedBytes += one.encoded
		addCosts(total, one)
		for _, connection := range one.connections {
			statistics := connection.Statistics()
			connects, handshakes, connections = connects+statistics.Connect, handshakes+statistics.TLS, connections+1
			addConnection(total, statistics)
		}
		distributions.RoundTrip = contract.MergeHistograms(distributions.RoundTrip, one.ledger.roundTrip.Histogram())
		distributions.RoundTripActual = contract.MergeHistograms(distributions.RoundTripActual, one.ledger.actual.Histogram())
		distributions.Acknowledge = contract.MergeHistograms(distributions.Acknowledge, one.ledger.acks.Histogram())
	}
	if connections > 0 {
		total.ConnectNanoseconds = connects.Nanoseconds() / int64(connections)
		total.TLSNanoseconds = handshakes.Nanoseconds() / int64(connections)
	}
	trial.DurationNanoseconds = max(last-begun, 0).Nanoseconds()
	total.SessionNanoseconds = last.Nanoseconds()
	trial.Exchange, trial.Distributions = total, distributions
}

func add(total, counts *contract.Exchange) {
	total.Sent += counts.Sent
	total.Received += counts.Received
	total.Lost += counts.Lost
	total.Acknowledged += counts.Acknowledged
	total.AcknowledgedLost += counts.AcknowledgedLost
	total.Duplicated += counts.Duplicated
	total.OutOfOrder += counts.OutOfOrder
	total.LateSends += counts.LateSends
	total.ReceivedBytes += counts.ReceivedBytes
	total.Errors += counts.Errors
	for cause, number := range counts.ErrorCauses {
		total.ErrorCauses[cause] += number
	}
}

func addCosts(total *contract.Exchange, one *pair) {
	encoding, decoding := one.encoder.Spent(), one.decoder.Spent()
	total.CompressNanoseconds += encoding.Compress.Nanoseconds()
	total.EncryptNanoseconds += encoding.Encrypt.Nanoseconds()
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
