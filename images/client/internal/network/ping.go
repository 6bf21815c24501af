package network

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/wait"
)

const (
	answering   = 10 * time.Second // that the last request may wait for its answer
	mostSending = 1e9              // milliseconds for which a ping sends
	pingFailed  = "PingFailed"     // of a trial: the next may find the network again
)

var (
	echoLine    = regexp.MustCompile(`^\d+ bytes from .* time=(\d+(?:\.\d+)?) ms( \(DUP!\))?$`)
	countsLine  = regexp.MustCompile(`^(\d+) packets transmitted, (\d+) received`)
	sendingTime = regexp.MustCompile(`, time (\d+)ms$`)
	summaryLine = regexp.MustCompile(`^rtt min/avg/max/mdev = (\d+\.\d+)/(\d+\.\d+)/(\d+\.\d+)/(\d+\.\d+) ms`)
)

// pinged is the result of ping, which is empty without a summary. sending is the time from the first request to the
// last one.
type pinged struct {
	echoes    *contract.Echoes
	histogram *contract.Histogram
	sending   time.Duration
}

func (p pinged) addIdle(trial *contract.Trial) {
	trial.Network.Ping = p.echoes
	if p.histogram != nil {
		distributions(trial).Ping = p.histogram
	}
}

func (p pinged) addUnderLoad(trial *contract.Trial) {
	trial.Network.PingUnderLoad = p.echoes
	if p.histogram != nil {
		distributions(trial).PingUnderLoad = p.histogram
	}
}

func distributions(trial *contract.Trial) *contract.Distributions {
	if trial.Distributions == nil {
		trial.Distributions = &contract.Distributions{}
	}
	return trial.Distributions
}

// ping sends echo requests. It parses every answer and the summary of the program.
func ping(ctx context.Context, options *Ping) (pinged, error) {
	if options.Count == 0 {
		return pinged{}, nil
	}
	seconds := strconv.FormatFloat(options.Interval.Seconds(), 'f', -1, 64)
	limit := time.Duration(options.Count)*options.Interval + 2*answering
	written, stderr, err := run(ctx, limit, "ping", "-n", "-c", strconv.Itoa(options.Count), "-i", seconds, "-s", strconv.Itoa(options.Size), options.Host)
	if errors.Is(err, context.DeadlineExceeded) {
		return pinged{}, &contract.Failure{Reason: pingFailed, Message: fmt.Sprintf("ping did not end within %v", limit)}
	}
	if err != nil {
		return pinged{}, err
	}
	found := readPing(string(written))
	if found.echoes == nil {
		return pinged{}, pingFailure(string(stderr))
	}
	return found, nil
}

// awaitEcho waits until the host answers one echo request, because a network policy may take effect late for a new pod. A host
// that never answers is measured nevertheless.
func awaitEcho(ctx context.Context, options *Ping) error {
	if options.Count == 0 {
		return nil
	}
	for deadline := time.Now().Add(answering); time.Now().Before(deadline); {
		written, _, err := run(ctx, answering, "ping", "-n", "-c", "1", "-W", "1", options.Host)
		if errors.Is(err, context.Canceled) {
			return err
		}
		if echoes := readPing(string(written)).echoes; echoes == nil || echoes.Received > 0 {
			return nil // without a summary, the first trial says why
		}
		if err := wait.For(ctx, retryPause); err != nil {
			return context.Canceled
		}
	}
	return nil
}

func readPing(text string) pinged {
	var echoes *contract.Echoes
	var sending time.Duration
	times, duplicated := []int64{}, int64(0)
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if found := echoLine.FindStringSubmatch(line); found != nil {
			if found[2] != "" {
				duplicated++
				continue
			}
			times = append(times, *milliseconds(found[1]))
		}
		if found := countsLine.FindStringSubmatch(line); found != nil {
			echoes = &contract.Echoes{Sent: count(found[1]), Received: count(found[2]), Duplicated: duplicated}
		}
		if found := sendingTime.FindStringSubmatch(line); found != nil {
			sending = time.Duration(min(count(found[1]), mostSending)) * time.Millisecond
		}
		if found := summaryLine.FindStringSubmatch(line); found != nil && echoes != nil {
			echoes.MinNanoseconds, echoes.MeanNanoseconds = milliseconds(found[1]), milliseconds(found[2])
			echoes.MaxNanoseconds, echoes.StandardDeviationNanoseconds = milliseconds(found[3]), milliseconds(found[4])
		}
	}
	if len(times) == 0 {
		return pinged{echoes: echoes, sending: sending}
	}
	return pinged{echoes, contract.NewHistogram(times), sending}
}

// count returns the number in digits that an expression has matched, or the largest int64 if it is larger.
func count(digits string) int64 {
	value, _ := strconv.ParseInt(digits, 10, 64)
	return value
}

func milliseconds(digits string) *int64 {
	value, _ := strconv.ParseFloat(digits, 64)
	return nanoseconds(value)
}

func pingFailure(stderr string) *contract.Failure {
	if strings.Contains(stderr, "Operation not permitted") || strings.Contains(stderr, "Permission denied") {
		return &contract.Failure{Reason: "PingNotPermitted", Message: stderr + ": allow the sysctl net.ipv4.ping_group_range to pods of this " +
			"namespace (it is a safe one), or with access: HostNetwork set it on the node, or set ping.count to 0"}
	}
	return &contract.Failure{Reason: pingFailed, Message: strings.ReplaceAll(stderr, "\n", "; ")}
}
