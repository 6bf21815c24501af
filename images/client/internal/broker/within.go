package broker

import (
	"context"
	"time"
)

// closeTimeout is how long a program that was told to end tries to end its connections well: a pod has 2 s.
const closeTimeout = time.Second

// within returns when work has ended, or a time after ctx: a broker that neither takes nor answers anything holds nobody.
// It says whether the work has ended.
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
