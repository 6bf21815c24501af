package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/download"
	"tierbench.io/client/internal/tlsconfig"
)

type downloadFlags struct {
	ending
	url, trials, cacheState, agent, agentTokenFile, tls, caFile, serverName string
	size                                                                    int64
	warmup, concurrency, readTimeout, attempts, wait                        int
	verifyDigest                                                            bool
}

func downloadCommand() *cobra.Command {
	flags := &downloadFlags{}
	command := &cobra.Command{
		Use:   "download --url URL --size BYTES",
		Short: "Fetch a file over HTTP, trial after trial, and measure each",
		Long: `Fetches a file over HTTP, trial after trial, with the semantics of wget: a transfer that stalls for longer than the
read timeout, breaks off or is refused is tried again after a pause, and goes on where it broke off. A trial that ends
with every byte is good, however many retries it took; its time includes them.`,
		Example: "  tierbench-client download --url http://server:8080/1048576.bin --size 1048576 --trials 1-10",
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return runDownload(command.Context(), flags) },
	}
	set := command.Flags()
	set.StringVar(&flags.url, "url", "", "the file, http://… or https://…")
	set.Int64Var(&flags.size, "size", 0, "its size in bytes")
	set.StringVar(&flags.trials, "trials", "1-1", "numbers of the trials to run, FIRST-LAST")
	set.IntVar(&flags.warmup, "warmup", 0, "trials before them that do not count")
	set.IntVar(&flags.concurrency, "concurrency", 1, "downloads at the same time")
	set.IntVar(&flags.readTimeout, "read-timeout-milliseconds", 1000, "a wait for data longer than this is a retry")
	set.IntVar(&flags.attempts, "attempts", 20, "connections that a download may use")
	set.IntVar(&flags.wait, "wait-milliseconds", 1000, "pause before each further attempt")
	set.BoolVar(&flags.verifyDigest, "verify-digest", false, "compare the content with the SHA-256 at URL.sha256 (costs CPU)")
	set.StringVar(&flags.tls, "tls", "None", "None, TLSv1.2 or TLSv1.3: exactly this version")
	set.StringVar(&flags.caFile, "ca-file", "", "trust this CA instead of the system's")
	set.StringVar(&flags.serverName, "server-name", "", "name that the server's certificate must bear (the URL's host)")
	set.StringVar(&flags.agent, "agent", "", "URL of the agent beside the server")
	set.StringVar(&flags.agentTokenFile, "agent-token-file", "", "file with the agent's token")
	set.StringVar(&flags.cacheState, "cache-state", "Natural", "page cache before each trial: Natural, Warm or Cold (needs --agent)")
	flags.ending.add(set)
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return flags.refuse(fmt.Errorf("%w: see tierbench-client download --help", err))
	})
	return command
}

func runDownload(ctx context.Context, flags *downloadFlags) error {
	options, err := flags.options()
	if err != nil {
		return flags.refuse(err)
	}
	if flags.output == "text" {
		report := download.NewTextReport(os.Stdout)
		err := download.Run(ctx, options, report)
		report.Summarize()
		return err
	}
	printer := contract.NewPrinter(os.Stdout)
	return flags.seal(printer, download.Run(ctx, options, printer))
}

func (f *downloadFlags) options() (*download.Options, error) {
	address, err := url.Parse(f.url)
	if err != nil || address.Host == "" || (address.Scheme != "http" && address.Scheme != "https") {
		return nil, fmt.Errorf("--url is %q: write http://HOST:PORT/PATH or https://…", f.url)
	}
	if (address.Scheme == "https") != (f.tls != "None") {
		return nil, fmt.Errorf("--url begins with %s and --tls is %s: https needs TLSv1.2 or TLSv1.3, http needs None", address.Scheme, f.tls)
	}
	first, last, err := parseRange(f.trials)
	if err != nil {
		return nil, err
	}
	config, err := tlsconfig.New(f.tls, f.caFile, f.serverName)
	if err != nil {
		return nil, err
	}
	agent, err := connectAgent(f.agent, f.agentTokenFile)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.check(), f.ending.check()); err != nil {
		return nil, err
	}
	return &download.Options{
		URL: address, Size: f.size, Series: contract.Series{Warmup: f.warmup, First: first, Last: last}, Concurrency: f.concurrency,
		ReadTimeout: time.Duration(f.readTimeout) * time.Millisecond, Attempts: f.attempts,
		Wait: time.Duration(f.wait) * time.Millisecond, VerifyDigest: f.verifyDigest, TLS: config,
		CacheState: f.cacheState, Agent: agent,
	}, nil
}

func (f *downloadFlags) check() error {
	switch {
	case f.size < 1, f.concurrency < 1, f.attempts < 1, f.readTimeout < 1:
		return errors.New("--size, --concurrency, --attempts and --read-timeout-milliseconds must be at least 1")
	case f.warmup < 0, f.wait < 0:
		return errors.New("--warmup and --wait-milliseconds cannot be negative")
	case f.cacheState != "Natural" && f.cacheState != "Warm" && f.cacheState != "Cold":
		return fmt.Errorf("--cache-state is %q: write Natural, Warm or Cold", f.cacheState)
	case f.cacheState != "Natural" && f.agent == "":
		return fmt.Errorf("--cache-state %s needs the --agent beside the server", f.cacheState)
	}
	return nil
}

func parseRange(text string) (first, last int, err error) {
	begin, end, isRange := strings.Cut(text, "-")
	if !isRange {
		end = begin
	}
	first, firstErr := strconv.Atoi(begin)
	last, lastErr := strconv.Atoi(end)
	if firstErr != nil || lastErr != nil || first < 1 || last < first {
		return 0, 0, fmt.Errorf("--trials is %q: write FIRST-LAST, for example 1-10", text)
	}
	return first, last, nil
}
