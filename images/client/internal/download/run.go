package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"tierbench.io/client/internal/contract"
)

// Reporter is told of every trial.
type Reporter interface {
	Started(trial int, warmup bool, at time.Time) error
	Ended(trial contract.Trial) error
}

// Run runs warm-up trials and then those that options ask for. Trials that fail are reported like others; an error is
// what ends the whole series early: a *contract.Failure, or context.Canceled.
func Run(ctx context.Context, options *Options, report Reporter) error {
	digest, err := expectedDigest(ctx, options)
	if err != nil {
		return err
	}
	for number := 1; number <= options.Warmup; number++ {
		if err := runTrial(ctx, options, report, digest, number, true); err != nil {
			return err
		}
	}
	for number := options.First; number <= options.Last; number++ {
		if err := runTrial(ctx, options, report, digest, number, false); err != nil {
			return err
		}
	}
	return nil
}

func runTrial(ctx context.Context, options *Options, report Reporter, digest string, number int, warmup bool) error {
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

const digestLength = 64

// expectedDigest asks the server for the SHA-256 of the file, if it is to be compared.
func expectedDigest(ctx context.Context, options *Options) (string, error) {
	if !options.VerifyDigest {
		return "", nil
	}
	transport := &http.Transport{TLSClientConfig: options.TLS}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: agentPatience}
	address := options.URL.String() + ".sha256"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return "", context.Canceled
		}
		return "", fatal("NoDigest", fmt.Sprintf("%s: %v", address, err))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1024))
	words := strings.Fields(string(body))
	if err != nil || response.StatusCode != http.StatusOK || len(words) == 0 || len(words[0]) != digestLength {
		return "", fatal("NoDigest", fmt.Sprintf("%s: %s: the digest to compare with is not there", address, response.Status))
	}
	return words[0], nil
}
