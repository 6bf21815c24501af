package transfer

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

// outcome is the outcome of one transfer of a trial.
type outcome struct {
	phases   phases
	bytes    int64
	retries  map[string]int64
	longest  time.Duration
	duration time.Duration
	cipher   string
	// unexplained is the number of retries for which a program gave no cause.
	unexplained int64
	err         error // nil, a *contract.Failure, or context.Canceled
}

// transfer runs one transfer until all bytes have arrived, no attempts are left, or an error is fatal.
func transfer(ctx context.Context, options *Options, server target, digest string, index int) outcome {
	started := time.Now()
	result := outcome{retries: map[string]int64{}}
	one := &file{options: options, target: server, address: options.address(index)}
	if digest != "" && !options.Upload {
		one.digest = sha256.New()
	}
	for number := 1; ; number++ {
		took, err := one.attempt(ctx)
		if number == 1 {
			result.phases = took
		}
		if err == nil && one.digest != nil && hex.EncodeToString(one.digest.Sum(nil)) != digest {
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
			one.startOver()
		}
		if wait.For(ctx, options.wait(number)) != nil {
			result.err = context.Cause(ctx)
			break
		}
	}
	result.bytes, result.longest, result.cipher = one.received, one.longest, one.cipher
	result.duration = time.Since(started)
	return result
}

// verdict returns nil if an attempt ended the transfer with success, or if another attempt may follow.
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

// measure runs the transfers of one trial simultaneously.
func measure(ctx context.Context, options *Options, server target, digest string) (contract.Trial, []outcome, error) {
	outcomes := make([]outcome, options.Concurrency)
	meter := computer.Own().Watch()
	before := rusage.CPU() + rusage.ProgramsCPU()
	started := time.Now()
	limited, cancel := options.limited(ctx)
	defer cancel()
	var group sync.WaitGroup
	for index := range outcomes {
		group.Add(1)
		go func() {
			defer group.Done()
			if options.Program != nil {
				outcomes[index] = options.Program.transfer(limited, options, server, index)
				return
			}
			outcomes[index] = transfer(limited, options, server, digest, index)
		}()
	}
	group.Wait()
	elapsed, cpu := time.Since(started), rusage.CPU()+rusage.ProgramsCPU()-before
	if ctx.Err() != nil {
		return contract.Trial{}, nil, context.Canceled
	}
	return contract.Trial{
		Outcome:             contract.Completed,
		StartTime:           contract.FormatTime(started),
		DurationNanoseconds: elapsed.Nanoseconds(),
		Client: contract.ClientSample{
			CPUNanoseconds:     cpu.Nanoseconds(),
			CPULimitMillicores: cpuLimit(),
			Computer:           meter.End(computer.Route(server.addresses[0].String())),
		},
	}, outcomes, nil
}

// limited returns a context that ends with the time limit of a trial.
func (o *Options) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.Limit == 0 {
		return context.WithCancel(ctx)
	}
	message := fmt.Sprintf("the trial was ended at its limit of %v: check whether the server still sends, or raise the limit for this file", o.Limit)
	return context.WithTimeoutCause(ctx, o.Limit, &contract.Failure{Reason: contract.TimedOut, Message: message})
}

// cpuLimit returns what the transfers can use of the CPUs at once, in thousandths. A transfer uses at most one CPU.
func cpuLimit() int64 {
	own := int64(runtime.GOMAXPROCS(0)) * 1000
	if limit := computer.Own().CPULimit(); limit > 0 {
		return min(own, limit)
	}
	return own
}

func summarize(options *Options, outcomes []outcome) *contract.Transfer {
	summary := &contract.Transfer{Direction: options.direction(), Downloads: int64(len(outcomes)), RetryCauses: map[string]int64{}}
	var connect, handshake, firstByte, longest time.Duration
	for _, one := range outcomes {
		summary.Bytes += one.bytes
		connect, handshake, firstByte = connect+one.phases.connect, handshake+one.phases.tls, firstByte+one.phases.firstByte
		longest = max(longest, one.longest)
		summary.Cipher = cmp.Or(summary.Cipher, one.cipher)
		summary.Retries += one.unexplained
		for cause, number := range one.retries {
			summary.Retries += number
			summary.RetryCauses[cause] += number
		}
	}
	number := time.Duration(len(outcomes))
	summary.ConnectNanoseconds, summary.TLSNanoseconds = known(connect/number), known(handshake/number)
	summary.FirstByteNanoseconds, summary.LongestStallNanoseconds = known(firstByte/number), known(longest)
	if !options.Upload {
		copied := options.copies()
		summary.Copied = &copied
	}
	return summary
}

// known returns a time, or nil for one that was not measured.
func known(took time.Duration) *int64 {
	if took == 0 {
		return nil
	}
	nanoseconds := took.Nanoseconds()
	return &nanoseconds
}

// setOutcome sets the outcome of a trial from its transfers, and the distribution of the successful ones' durations.
func setOutcome(trial *contract.Trial, outcomes []outcome) {
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
