package download

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/wait"
)

const digestTimeout = 10 * time.Second

// Target is a server and a file.
type Target struct {
	Options *Options
	digest  string
}

// Prepare requests the digest of the content.
func (t *Target) Prepare(ctx context.Context) error {
	var err error
	t.digest, err = expectedDigest(ctx, t.Options)
	return err
}

// Trial runs one trial.
func (t *Target) Trial(ctx context.Context, report contract.Reporter, number int, warmup bool) error {
	options := t.Options
	server, err := lookUp(ctx, options.URL)
	var unknown *contract.Failure
	if errors.As(err, &unknown) {
		return reportUnknown(options, report, unknown, number, warmup)
	}
	if err != nil {
		return err
	}
	observed := false
	if options.Agent != nil {
		if observed, err = options.Agent.Begin(ctx, path.Base(options.URL.Path), options.CacheState); err != nil {
			return err
		}
	}
	if err := report.Started(number, warmup, time.Now()); err != nil {
		return err
	}
	trial, err := measure(ctx, options, server, t.digest)
	if err != nil {
		return err
	}
	trial.Trial, trial.Warmup = number, warmup
	if observed {
		trial.Server = options.Agent.End(ctx)
	}
	return report.Ended(trial)
}

// reportUnknown reports a trial whose server was not found, so that its clock did not start.
func reportUnknown(options *Options, report contract.Reporter, failure *contract.Failure, number int, warmup bool) error {
	now := time.Now()
	if err := report.Started(number, warmup, now); err != nil {
		return err
	}
	downloads := int64(options.Concurrency)
	return report.Ended(contract.Trial{
		Trial: number, Warmup: warmup, Outcome: contract.Failed, Failure: failure, StartTime: contract.FormatTime(now),
		Transfer: &contract.Transfer{Downloads: downloads, Errors: downloads, RetryCauses: map[string]int64{}},
	})
}

// expectedDigest requests the SHA-256 of the file, if it is to be compared, with as many attempts as a download has.
func expectedDigest(ctx context.Context, options *Options) (string, error) {
	if !options.VerifyDigest {
		return "", nil
	}
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: options.TLS, DisableKeepAlives: true},
		Timeout:   digestTimeout,
	}
	address := options.URL.String() + ".sha256"
	for number := 1; ; number++ {
		digest, err := fetchDigest(ctx, client, address)
		var again *retryable
		if !errors.As(err, &again) {
			return digest, err
		}
		if number == options.Attempts {
			return "", fatal("NoDigest", fmt.Sprintf("%s: %v: check that the server runs", address, again.err))
		}
		if wait.For(ctx, options.wait(number)) != nil {
			return "", context.Canceled
		}
	}
}

func fetchDigest(ctx context.Context, client *http.Client, address string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	switch {
	case ctx.Err() != nil:
		return "", context.Canceled
	case err != nil:
		return "", retry(contract.Unreachable, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1024))
	if err != nil {
		return "", whileReading(err)
	}
	if response.StatusCode >= http.StatusInternalServerError {
		return "", retry(contract.ServerError, errors.New(response.Status))
	}
	word, _, _ := strings.Cut(strings.TrimSpace(string(body)), " ")
	digest, err := hex.DecodeString(word)
	if response.StatusCode != http.StatusOK || err != nil || len(digest) != sha256.Size {
		return "", fatal("NoDigest", fmt.Sprintf("%s: %s: the server has no SHA-256 in hexadecimal to compare with", address, response.Status))
	}
	return hex.EncodeToString(digest), nil
}
