package broker

import (
	"context"
	"fmt"
	"math"
	"time"

	"tierbench.io/client/internal/contract"
)

// WarmRounds is enough for any broker.
const WarmRounds = 20

const (
	warmRound = 250 * time.Millisecond
	warmGain  = 0.95 // of the best round's median: a median above it is no gain
	warmVain  = 3    // rounds without a gain, after which no more gain is expected
)

// warm lets as many pairs as in a trial exchange messages until their round trip no longer falls. The first messages of a cold
// broker take several times as long as later ones. It ignores errors, because the trials report them.
func warm(ctx context.Context, options *Options) {
	if options.WarmRounds == 0 {
		return
	}
	one := *options
	one.Role, one.InFlight, one.Unacknowledged, one.Interval, one.Messages, one.Duration = Both, 1, 0, 0, 0, warmRound
	one.Keeps = false
	if one.OneWay {
		one.Role = Alone
	}
	pairs, err := connectAll(ctx, &one, fmt.Sprintf("warm%d", options.Part), 0, time.Now())
	defer closeAll(ctx, pairs)
	best, vain := int64(math.MaxInt64), 0
	for round := 0; err == nil && round < options.WarmRounds && vain < warmVain; round++ {
		err = loadAll(ctx, pairs)
		vain++
		if median := roundTrips(pairs).Quantile(0.5); float64(median) < warmGain*float64(best) {
			best, vain = median, 0
		}
	}
}

// roundTrips returns the round trips since the last call: of a protocol without subscribers, to the acknowledgement.
func roundTrips(pairs []*pair) *contract.Histogram {
	total := &contract.Distributions{}
	for _, pair := range pairs {
		for _, one := range pair.senders {
			merge(total, one.ledger.restart())
		}
	}
	if total.RoundTrip == nil {
		return total.Acknowledge
	}
	return total.RoundTrip
}
