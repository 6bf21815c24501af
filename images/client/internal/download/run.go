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
	"tierbench.io/client/internal/pause"
)

const digestPatience = 10 * time.Second

// Run runs warm-up trials and then those that options ask for. Trials that fail are reported like others; an error is
// what ends the whole series early: a *contract.Failure, or context.Canceled.
func Run(ctx context.Context, options *Options, report contract.Reporter) error {
	digest, err := expectedDigest(ctx, options)
	if err != nil {
		return err
	}
	return options.Each(func(number int, warmup bool) error {
		return runTrial(ctx, options, report, digest, number, warmup)
	})
}

func runTrial(ctx context.Context, options *Options, report contract.Reporter, digest string, number int, warmup bool) error {
	observed := false
	if options.Agent != nil {
		var err error
		if observed, err = options.Agent.Begin(ctx, path.Base(options.URL.Path), options.CacheState); err != nil {
			return err
		}
	}
	if err := report.Started(number, warmup, time.Now()); err != nil {
		return err
	}
	trial, err := measure(ctx, options, digest)
	if err != nil {
		return err
	}
	trial.Trial, trial.Warmup = number, warmup
	if observed {
		trial.Server = options.Agent.End(ctx)
	}
	return report.Ended(trial)
}

// expectedDigest asks the server for the SHA-256 of the file, if it is to be compared, as often as a download may.
func expectedDigest(ctx context.Context, options *Options) (string, error) {
	if !options.VerifyDigest {
		return "", nil
	}
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: options.TLS, DisableKeepAlives: true},
		Timeout:   digestPatience,
	}
	address := options.URL.String() + ".sha256"
	for number := 1; ; number++ {
		digest, err := fetchDigest(ctx, client, address)
		var again *retryable
		if !errors.As(err, &again) {
			return digest, err
		}
		if number == options.Attempts {
			return "", fatal("NoDigest", fmt.Sprintf("%s: %v: is the server up?", address, again.err))
		}
		if pause.For(ctx, options.Wait) != nil {
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
		return "", fatal("NoDigest", fmt.Sprintf("%s: %s: no SHA-256 in hexadecimal is there to compare with", address, response.Status))
	}
	return hex.EncodeToString(digest), nil
}
