package broker

import (
	"context"
	"time"
)

// closeTimeout is the time that a terminating program has to close its connections. A pod has 2 s.
const closeTimeout = time.Second

// within returns when work has ended, or some time after ctx is done, so that a broker that does not answer cannot block it. It
// reports whether the work has ended.
func within(ctx context.Context, grace time.Duration, work func()) bool {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		work()
	}()
	select {
	case <-ended:
		return true
	case <-ctx.Done():
	}
	select {
	case <-ended:
		return true
	case <-time.After(grace):
		return false
	}
}
