// Package wait waits, unless it is told to stop.
package wait

import (
	"context"
	"time"
)

// For returns after a duration, or with the context's error as soon as that is done.
func For(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
