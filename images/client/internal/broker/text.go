package broker

import (
	"fmt"
	"time"

	"tierbench.io/client/internal/contract"
)

// Words say what became of the messages.
func Words(trial contract.Trial) string {
	seconds, exchange := float64(trial.DurationNanoseconds)/1e9, trial.Exchange
	cpu := float64(trial.Client.CPUNanoseconds) / 1e3 / float64(max(exchange.Received, 1))
	return fmt.Sprintf("%d of %d messages in %.3f s, %.0f a second, median round trip %v, %.1f µs of CPU a message, %d lost, %d retried, %d errors",
		exchange.Received, exchange.Sent, seconds, float64(exchange.Received)/seconds,
		time.Duration(trial.Distributions.RoundTrip.Quantile(0.5)), cpu, exchange.Lost, exchange.Retried, exchange.Errors)
}
