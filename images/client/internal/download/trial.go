package download

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/pause"
	"tierbench.io/client/internal/usage"
)

// outcome of one download of a trial.
type outcome struct {
	phases   phases
	bytes    int64
	retries  map[string]int64
	longest  time.Duration
	duration time.Duration
	err      error // nil, a *contract.Failure, or context.Canceled
}

// fetch runs one download to its end: every byte, no attempts left, or an error that no attempt can mend.
func fetch(ctx context.Context, options *Options, digest string) outcome {
	started := time.Now()
	result := outcome{retries: map[string]int64{}}
	download := &file{options: options}
	if digest != "" {
		download.digest = sha256.New()
	}
	for number := 1; ; number++ {
		took, err := download.attempt(ctx)
		if number == 1 {
			result.phases = took
		}
		if err == nil && digest != "" && hex.EncodeToString(download.digest.Sum(nil)) != digest {
			err = retry(contract.Corrupt, errors.New("the content has another SHA-256 than the server says"))
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
		if pause.For(ctx, options.Wait) != nil {
			result.err = context.Canceled
			break
		}
	}
	result.bytes, result.longest, result.duration = download.received, download.longest, time.Since(started)
	return result
}

// verdict of an attempt's end: nil if it is the download's end in success, or if another attempt may follow.
func verdict(err error, number int, options *Options) error {
	var again *retryable
	if !errors.As(err, &again) {
		return err
	}
	if number < options.Attempts {
		return nil
	}
	message := fmt.Sprintf("%d attempts were used up, the last by %v: is the server overloaded, or the read timeout too short?", number, again)
	return &contract.Failure{Reason: "AttemptsExhausted", Message: message}
}

// measure runs the downloads of one trial, all at once.
func measure(ctx context.Context, options *Options, digest string) (contract.Trial, error) {
	outcomes := make([]outcome, options.Concurrency)
	before := usage.CPU()
	started := time.Now()
	var group sync.WaitGroup
	for index := range outcomes {
		group.Add(1)
		go func() {
			defer group.Done()
			outcomes[index] = fetch(ctx, options, digest)
		}()
	}
	group.Wait()
	elapsed, cpu := time.Since(started), usage.CPU()-before
	if ctx.Err() != nil {
		return contract.Trial{}, context.Canceled
	}
	trial := contract.Trial{
		Outcome:             contract.Completed,
		StartTime:           contract.FormatTime(started),
		DurationNanoseconds: elapsed.Nanoseconds(),
		Client:              contract.ClientSample{CPUNanoseconds: cpu.Nanoseconds()},
	}
	summarize(&trial, outcomes, digest != "")
	return trial, nil
}

func summarize(trial *contract.Trial, outcomes []outcome, verified bool) {
	transfer := &contract.Transfer{Downloads: int64(len(outcomes)), RetryCauses: map[string]int64{}, DigestVerified: verified}
	durations := []int64{}
	for _, one := range outcomes {
		transfer.Bytes += one.bytes
		transfer.DNSNanoseconds += one.phases.dns.Nanoseconds() / transfer.Downloads
		transfer.ConnectNanoseconds += one.phases.connect.Nanoseconds() / transfer.Downloads
		transfer.TLSNanoseconds += one.phases.tls.Nanoseconds() / transfer.Downloads
		transfer.FirstByteNanoseconds += one.phases.firstByte.Nanoseconds() / transfer.Downloads
		transfer.LongestStallNanoseconds = max(transfer.LongestStallNanoseconds, one.longest.Nanoseconds())
		for cause, number := range one.retries {
			transfer.Retries += number
			transfer.RetryCauses[cause] += number
		}
		var failure *contract.Failure
		if errors.As(one.err, &failure) {
			transfer.Errors++
			trial.Outcome, trial.Failure = contract.Failed, failure
			continue
		}
		durations = append(durations, one.duration.Nanoseconds())
	}
	trial.Transfer = transfer
	if len(durations) > 0 {
		trial.Distributions = &contract.Distributions{DownloadDuration: contract.NewHistogram(durations)}
	}
}
