package broker

import (
	"context"
	"fmt"
	"math"
	"time"
)

const (
	warmRound  = 250 * time.Millisecond
	warmRounds = 20
	warmGain   = 0.95 // of the best round's median: less is no gain
	warmVain   = 3    // rounds without a gain, after which there is none to come
)

// warm lets one pair exchange messages until their round trip no longer falls: the first that a cold broker carries take
// several times as long as later ones. What goes wrong here the trials will tell.
func warm(ctx context.Context, options *Options) {
	one := *options
	one.Role, one.InFlight, one.Interval, one.Messages, one.Duration = Both, 1, 0, 0, warmRound
	best, vain := int64(math.MaxInt64), 0
	for round := 0; round < warmRounds && vain < warmVain; round++ {
		median, err := warmOnce(ctx, &one, round)
		if err != nil {
			return
		}
		vain++
		if float64(median) < warmGain*float64(best) {
			best, vain = median, 0
		}
	}
}

func warmOnce(ctx context.Context, options *Options, round int) (int64, error) {
	made, err := connect(ctx, options, options.Part, fmt.Sprintf("warm%d", round), time.Now())
	if err == nil {
		err = made.load(ctx)
	}
	if made == nil {
		return 0, err
	}
	within(ctx, farewell, made.close)
	made.ledger.close()
	return made.ledger.roundTrip.Histogram().Quantile(0.5), err
}
