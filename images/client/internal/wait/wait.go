// Package wait waits for a duration or a context.
package wait

import (
	"context"
	"time"
)

// For returns nil after a duration, or the error of the context as soon as it is done.
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
