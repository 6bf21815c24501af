package download

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"tierbench.io/client/internal/computer"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/rusage"
	"tierbench.io/client/internal/wait"
)

// outcome is the outcome of one download of a trial.
type outcome struct {
	phases   phases
	bytes    int64
	retries  map[string]int64
	longest  time.Duration
	duration time.Duration
	cipher   string
	err      error // nil, a *contract.Failure, or context.Canceled
}

// fetch runs one download until it has all bytes, no attempts left, or a fatal error.
func fetch(ctx context.Context, options *Options, server target, digest string) outcome {
	started := time.Now()
	result := outcome{retries: map[string]int64{}}
	download := &file{options: options, target: server}
	if digest != "" {
		download.digest = sha256.New()
	}
	for number := 1; ; number++ {
		took, err := download.attempt(ctx)
		if number == 1 {
			result.phases = took
		}
		if err == nil && digest != "" && hex.EncodeToString(download.digest.Sum(nil)) != digest {
			err = retry(contract.Corrupt, errors.New("the SHA-256 of the content differs from the server's"))
		}
		result.err = verdict(err, number, options)
		if result.err != nil || err == nil {
			break
		}
		var again *retryable
		errors.As(err, &again)
		result.retries[again.cause]++
		if again.cause == contract.Corrupt {
			download.startOver()
		}
		if wait.For(ctx, options.wait(number)) != nil {
			result.err = context.Cause(ctx)
			break
		}
	}
	result.bytes, result.longest, result.cipher = download.received, download.longest, download.cipher
	result.duration = time.Since(started)
	return result
}

// verdict returns nil if an attempt ended the download with success, or if another attempt may follow.
func verdict(err error, number int, options *Options) error {
	var again *retryable
	if !errors.As(err, &again) {
		return err
	}
	if number < options.Attempts {
		return nil
	}
	message := fmt.Sprintf("all %d attempts failed, the last one because of %v: check whether the server is overloaded, or raise the read timeout", number, again)
	return &contract.Failure{Reason: "AttemptsExhausted", Message: message}
}

// measure runs the downloads of one trial simultaneously.
func measure(ctx context.Context, options *Options, server target, digest string) (contract.Trial, error) {
	outcomes := make([]outcome, options.Concurrency)
	meter := computer.Own().Watch()
	before := rusage.CPU()
	started := time.Now()
	limited, cancel := options.limited(ctx)
	defer cancel()
	var group sync.WaitGroup
	for index := range outcomes {
		group.Add(1)
		go func() {
			defer group.Done()
			outcomes[index] = fetch(limited, options, server, digest)
		}()
	}
	group.Wait()
	elapsed, cpu := time.Since(started), rusage.CPU()-before
	if ctx.Err() != nil {
		return contract.Trial{}, context.Canceled
	}
	trial := contract.Trial{
		Outcome:             contract.Completed,
		StartTime:           contract.FormatTime(started),
		DurationNanoseconds: elapsed.Nanoseconds(),
		Client: contract.ClientSample{
			CPUNanoseconds:     cpu.Nanoseconds(),
			CPULimitMillicores: cpuLimit(),
			Computer:           meter.End(computer.Route(server.addresses[0].String())),
		},
		Transfer: summarize(outcomes),
	}
	trial.Transfer.LookupNanoseconds, trial.Transfer.DigestVerified = server.lookup.Nanoseconds(), digest != ""
	copied := options.copies()
	trial.Transfer.Copied = &copied
	judge(&trial, outcomes)
	return trial, nil
}

// limited returns a context that ends with the time limit of a trial.
func (o *Options) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.Limit == 0 {
		return context.WithCancel(ctx)
	}
	message := fmt.Sprintf("the trial was ended at its limit of %v: check whether the server still sends, or raise the limit for this file", o.Limit)
	return context.WithTimeoutCause(ctx, o.Limit, &contract.Failure{Reason: contract.TimedOut, Message: message})
}

// cpuLimit returns what the downloads can use of the CPUs at once, in thousandths. A download uses at most one CPU.
func cpuLimit() int64 {
	own := int64(runtime.GOMAXPROCS(0)) * 1000
	if limit := computer.Own().CPULimit(); limit > 0 {
		return min(own, limit)
	}
	return own
}

func summarize(outcomes []outcome) *contract.Transfer {
	transfer := &contract.Transfer{Downloads: int64(len(outcomes)), RetryCauses: map[string]int64{}}
	for _, one := range outcomes {
		transfer.Bytes += one.bytes
		transfer.ConnectNanoseconds += one.phases.connect.Nanoseconds() / transfer.Downloads
		transfer.TLSNanoseconds += one.phases.tls.Nanoseconds() / transfer.Downloads
		transfer.FirstByteNanoseconds += one.phases.firstByte.Nanoseconds() / transfer.Downloads
		transfer.LongestStallNanoseconds = max(transfer.LongestStallNanoseconds, one.longest.Nanoseconds())
		transfer.Cipher = cmp.Or(transfer.Cipher, one.cipher)
		for cause, number := range one.retries {
			transfer.Retries += number
			transfer.RetryCauses[cause] += number
		}
	}
	return transfer
}

// judge sets the outcome of a trial from its downloads, and the distribution of the successful ones' durations.
func judge(trial *contract.Trial, outcomes []outcome) {
	durations := []int64{}
	for _, one := range outcomes {
		var failure *contract.Failure
		if errors.As(one.err, &failure) {
			trial.Transfer.Errors++
			trial.Outcome, trial.Failure = contract.Failed, failure
			continue
		}
		durations = append(durations, one.duration.Nanoseconds())
	}
	if len(durations) > 0 {
		trial.Distributions = &contract.Distributions{DownloadDuration: contract.NewHistogram(durations)}
	}
}
