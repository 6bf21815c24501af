package broker

import (
	"fmt"
	"strconv"
	"time"

	"tierbench.io/client/internal/contract"
)

// Words returns what happened to the messages.
func Words(trial contract.Trial) string {
	seconds, exchange := float64(trial.DurationNanoseconds)/1e9, trial.Exchange
	number, due, became, times, lost := exchange.Acknowledged, exchange.Sent, "acknowledged", "acknowledgement", "unknown how many"
	found := trial.Distributions.Acknowledge
	if exchange.Arrivals != nil {
		number, due = exchange.Received, exchange.Received+exchange.Lost
		became, times, lost = "received", "round trip", strconv.FormatInt(exchange.Lost, 10)
		found = trial.Distributions.RoundTrip
	}
	cpu := float64(trial.Client.CPUNanoseconds) / 1e3 / float64(max(number, 1))
	return fmt.Sprintf("%d of %d messages %s in %.3f s, %.0f a second, median %s %v, %.1f µs of CPU a message, %s lost, %d retried, %d errors",
		number, due, became, seconds, float64(number)/seconds, times,
		time.Duration(found.Quantile(0.5)), cpu, lost, exchange.Retried, exchange.Errors)
}
