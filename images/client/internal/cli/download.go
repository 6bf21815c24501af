package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"tierbench.io/client/internal/agentclient"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/download"
	"tierbench.io/client/internal/tlsconfig"
)

type downloadFlags struct {
	ending
	seriesFlags
	url, caFile                        []string
	cacheState, tls, serverName        string
	size                               int64
	concurrency, readTimeout, attempts int
	wait, waitMaximum, trialSeconds    int
	verifyDigest, copied               bool
}

func downloadCommand() *cobra.Command {
	flags := &downloadFlags{}
	command := &cobra.Command{
		Use:   "download --url URL --size BYTES",
		Short: "Fetch a file over HTTP, trial after trial, and measure each",
		Long: `Fetches a file over HTTP, trial after trial, with the semantics of wget: a transfer that stalls for longer than the
read timeout, breaks or is refused is retried after a pause, and resumes where it broke. A trial that receives all bytes is
good, regardless of the number of retries. Its time includes them.`,
		Example: "  tierbench-client download --url http://server:8080/1048576.bin --size 1048576 --trials 1-10",
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return runDownload(command.Context(), flags) },
	}
	set := command.Flags()
	set.StringArrayVar(&flags.url, "url", nil, "the file, http://… or https://…; repeat it for each target")
	set.Int64Var(&flags.size, "size", 0, "size of the file in bytes")
	set.IntVar(&flags.concurrency, "concurrency", 1, "downloads at the same time")
	set.IntVar(&flags.readTimeout, "read-timeout-milliseconds", 1000, "retry after waiting for data for this time")
	set.IntVar(&flags.attempts, "attempts", 20, "maximum number of connections of a download")
	set.IntVar(&flags.wait, "wait-milliseconds", 1000, "pause before a retry")
	set.IntVar(&flags.waitMaximum, "wait-maximum-milliseconds", 0, "maximum pause; each pause is longer by the first one (0: constant pauses)")
	set.IntVar(&flags.trialSeconds, "trial-seconds", 0, "time limit of a trial (0: no limit)")
	set.BoolVar(&flags.copied, "copy", false, "copy plain content out of the kernel, as TLS has to, instead of dropping it there")
	set.BoolVar(&flags.verifyDigest, "verify-digest", false, "compare the content with the SHA-256 at URL.sha256 (costs CPU)")
	set.StringVar(&flags.tls, "tls", "None", "None, TLSv1.2 or TLSv1.3: exactly this version")
	set.StringArrayVar(&flags.caFile, "ca-file", nil, "trust this CA instead of the system's; repeat it for each target")
	set.StringVar(&flags.serverName, "server-name", "", "name in the server's certificate (default: the URL's host)")
	set.StringVar(&flags.cacheState, "cache-state", "Unchanged", "page cache before each trial: Unchanged, Warm or Cold (needs --agent)")
	flags.seriesFlags.add(set)
	flags.ending.add(set)
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return flags.refuse(fmt.Errorf("%w: see tierbench-client download --help", err))
	})
	return command
}

func runDownload(ctx context.Context, flags *downloadFlags) error {
	if err := errors.Join(flags.check(), flags.ending.check()); err != nil {
		return flags.refuse(err)
	}
	series, err := flags.series(max(len(flags.url), 1), flags.target)
	if err != nil {
		return flags.refuse(err)
	}
	// A download is one stream of work. More threads would search for work, and take time from it.
	runtime.GOMAXPROCS(min(runtime.GOMAXPROCS(0), flags.concurrency))
	if flags.output == "text" {
		report := download.NewTextReport(os.Stdout)
		err := series.Run(ctx, report)
		report.Summarize()
		return err
	}
	printer := contract.NewPrinter(os.Stdout)
	return flags.seal(printer, series.Run(ctx, printer))
}

func (f *downloadFlags) target(index int, agent *agentclient.Agent) (contract.Target, error) {
	given := of(f.url, index)
	address, err := url.Parse(given)
	if err != nil || address.Host == "" || (address.Scheme != "http" && address.Scheme != "https") {
		return nil, fmt.Errorf("--url is %q: write http://HOST:PORT/PATH or https://…", given)
	}
	if (address.Scheme == "https") != (f.tls != "None") {
		return nil, fmt.Errorf("--url begins with %s and --tls is %s: https needs TLSv1.2 or TLSv1.3, http needs None", address.Scheme, f.tls)
	}
	config, err := tlsconfig.New(f.tls, of(f.caFile, index), f.serverName)
	if err != nil {
		return nil, err
	}
	return &download.Target{Options: &download.Options{
		URL: address, Size: f.size, Concurrency: f.concurrency,
		ReadTimeout: time.Duration(f.readTimeout) * time.Millisecond, Attempts: f.attempts,
		Wait: time.Duration(f.wait) * time.Millisecond, WaitMaximum: time.Duration(f.waitMaximum) * time.Millisecond,
		Limit:        time.Duration(f.trialSeconds) * time.Second,
		VerifyDigest: f.verifyDigest, Copy: f.copied, TLS: config,
		CacheState: f.cacheState, Agent: agent,
	}}, nil
}

func (f *downloadFlags) check() error {
	if err := perTarget("ca-file", len(f.caFile), max(len(f.url), 1)); err != nil {
		return err
	}
	switch {
	case f.size < 1, f.concurrency < 1, f.attempts < 1, f.readTimeout < 1:
		return errors.New("--size, --concurrency, --attempts and --read-timeout-milliseconds must be at least 1")
	case f.wait < 0, f.trialSeconds < 0:
		return errors.New("--wait-milliseconds and --trial-seconds cannot be negative")
	case f.waitMaximum != 0 && f.waitMaximum < f.wait:
		return errors.New("--wait-maximum-milliseconds must be as long as --wait-milliseconds, or 0")
	case f.cacheState != "Unchanged" && f.cacheState != "Warm" && f.cacheState != "Cold":
		return fmt.Errorf("--cache-state is %q: write Unchanged, Warm or Cold", f.cacheState)
	case f.cacheState != "Unchanged" && len(f.agent) == 0:
		return fmt.Errorf("--cache-state %s needs the --agent of the server", f.cacheState)
	}
	return nil
}
