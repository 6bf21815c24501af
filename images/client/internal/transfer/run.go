package transfer

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

const requestTimeout = 10 * time.Second // besides transfers

// Target is a server and a file.
type Target struct {
	Options *Options
	digest  string
}

// Prepare requests the digest of the content, or computes it before uploads, if it is to be compared. A program for the transfers
// is prepared.
func (t *Target) Prepare(ctx context.Context) error {
	var err error
	switch {
	case t.Options.Program != nil:
		err = t.Options.Program.prepare(ctx, t.Options)
	case !t.Options.VerifyDigest:
	case t.Options.Upload:
		t.digest = contentDigest(t.Options.Size)
	default:
		t.digest, err = expectedDigest(ctx, t.Options)
	}
	return err
}

// Close frees what a program needed.
func (t *Target) Close(context.Context) {
	if t.Options.Program != nil {
		t.Options.Program.Close()
	}
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
		if observed, err = t.observe(ctx); err != nil {
			return err
		}
	}
	if err := report.Started(number, warmup, time.Now()); err != nil {
		return err
	}
	trial, outcomes, err := measure(ctx, options, server, t.digest)
	if err != nil {
		return err
	}
	trial.Trial, trial.Warmup = number, warmup
	if observed {
		trial.Server = options.Agent.End(ctx)
	}
	if options.Upload {
		t.checkStored(ctx, outcomes)
		if ctx.Err() != nil {
			return context.Canceled
		}
	}
	trial.Transfer = summarize(options, outcomes)
	trial.Transfer.LookupNanoseconds, trial.Transfer.DigestVerified = server.lookup.Nanoseconds(), t.digest != ""
	setOutcome(&trial, outcomes)
	return report.Ended(trial)
}

// observe starts the agent's samples. It brings the file that the server reads into the cache state.
func (t *Target) observe(ctx context.Context) (bool, error) {
	if t.Options.Upload {
		return t.Options.Agent.BeginTracing(ctx, 0, 0)
	}
	return t.Options.Agent.Begin(ctx, path.Base(t.Options.URL.Path), t.Options.CacheState)
}

// reportUnknown reports a trial whose server was not found, so that its clock did not start.
func reportUnknown(options *Options, report contract.Reporter, failure *contract.Failure, number int, warmup bool) error {
	now := time.Now()
	if err := report.Started(number, warmup, now); err != nil {
		return err
	}
	transfers := int64(options.Concurrency)
	return report.Ended(contract.Trial{
		Trial: number, Warmup: warmup, Outcome: contract.Failed, Failure: failure, StartTime: contract.FormatTime(now),
		Transfer: &contract.Transfer{
			Direction: options.direction(), Downloads: transfers, Errors: transfers, RetryCauses: map[string]int64{},
		},
	})
}

// client returns a client for the requests besides transfers.
func (o *Options) client(timeout time.Duration) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: o.TLS, DisableKeepAlives: true}, Timeout: timeout}
}

// persist repeats a request with as many attempts as a transfer has. Then it fails for the reason.
func (o *Options) persist(ctx context.Context, reason, address string, request func() error) error {
	for number := 1; ; number++ {
		err := request()
		var again *retryable
		if !errors.As(err, &again) {
			return err
		}
		if number == o.Attempts {
			return fatal(reason, fmt.Sprintf("%s: %v: check that the server runs", address, again.err))
		}
		if wait.For(ctx, o.wait(number)) != nil {
			return context.Canceled
		}
	}
}

// ask sends a request without a body. A server error may be gone with the next request.
func ask(ctx context.Context, client *http.Client, method, address string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	switch {
	case ctx.Err() != nil:
		return nil, context.Canceled
	case err != nil:
		return nil, retry(contract.Unreachable, err)
	case response.StatusCode >= http.StatusInternalServerError:
		response.Body.Close()
		return nil, retry(contract.ServerError, errors.New(response.Status))
	}
	return response, nil
}

// expectedDigest requests the SHA-256 of the file.
func expectedDigest(ctx context.Context, options *Options) (string, error) {
	client, address, digest := options.client(requestTimeout), options.URL.String()+".sha256", ""
	err := options.persist(ctx, "NoDigest", address, func() (err error) {
		digest, err = fetchDigest(ctx, client, address)
		return err
	})
	return digest, err
}

func fetchDigest(ctx context.Context, client *http.Client, address string) (string, error) {
	response, err := ask(ctx, client, http.MethodGet, address)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1024))
	if err != nil {
		return "", whileReading(err)
	}
	word, _, _ := strings.Cut(strings.TrimSpace(string(body)), " ")
	digest, err := hex.DecodeString(word)
	if response.StatusCode != http.StatusOK || err != nil || len(digest) != sha256.Size {
		return "", fatal("NoDigest", fmt.Sprintf("%s: %s: the server has no SHA-256 in hexadecimal to compare with", address, response.Status))
	}
	return hex.EncodeToString(digest), nil
}
