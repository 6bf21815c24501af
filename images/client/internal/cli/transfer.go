package cli

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/plan"
	"tierbench.io/client/internal/tlsconfig"
	"tierbench.io/client/internal/transfer"
)

func plannedTransfer(given *plan.TransferPlan) (*measurement, error) {
	if given.MaxWaitMilliseconds != 0 && given.MaxWaitMilliseconds < given.WaitMilliseconds {
		return nil, errors.New("maxWaitMilliseconds must be as long as waitMilliseconds, or 0")
	}
	cases := make([]contract.Case, len(given.Targets))
	for index, target := range given.Targets {
		made, err := transferTarget(given, &target)
		if err != nil {
			return nil, fmt.Errorf("targets[%d]: %w", index, err)
		}
		cases[index] = contract.Case{Target: made, Number: target.Case, Deadline: seconds(target.DeadlineSeconds), Check: linkCheck(given.Link, target.Agent)}
	}
	series, err := newSeries(cases, given.WarmupTrials, given.Schedule)
	if err != nil {
		return nil, err
	}
	// A transfer is one stream of work. More threads would search for work, and take time from it.
	made := &measurement{series: series, text: transfer.NewTextReport(os.Stdout), processors: given.Concurrency}
	if given.Engine != "" {
		made.engine = &transfer.Program{Name: given.Engine}
	}
	return made, nil
}

// transferProgram returns the program that makes the transfers with a target; nil: this one.
func transferProgram(given *plan.TransferPlan, target *plan.TransferTarget) (*transfer.Program, error) {
	switch {
	case given.Engine == "":
		return nil, nil
	case !slices.Contains(transfer.Programs, given.Engine):
		return nil, fmt.Errorf("engine is %q: write %s, or nothing for the client itself", given.Engine, strings.Join(transfer.Programs, " or "))
	case given.VerifyDigest:
		return nil, fmt.Errorf("engine %s drops the content: write verifyDigest: false", given.Engine)
	}
	return &transfer.Program{Name: given.Engine, TLS: given.TLS, ServerName: given.ServerName, CAFile: target.CAFile}, nil
}

func transferTarget(given *plan.TransferPlan, target *plan.TransferTarget) (*transfer.Target, error) {
	address, err := url.Parse(target.URL)
	switch {
	case err != nil || address.Host == "" || (address.Scheme != "http" && address.Scheme != "https"):
		return nil, fmt.Errorf("url is %q: write http://HOST:PORT/PATH or https://…", target.URL)
	case (address.Scheme == "https") != (given.TLS != "None"):
		return nil, fmt.Errorf("url begins with %s and tls is %s: https needs TLSv1.2 or TLSv1.3, http needs None", address.Scheme, given.TLS)
	case given.CacheState != "Unchanged" && given.Direction == contract.Upload:
		return nil, fmt.Errorf("cacheState is %s: an upload reads no file: write Unchanged", given.CacheState)
	case given.CacheState != "Unchanged" && target.Agent.URL == "":
		return nil, fmt.Errorf("cacheState %s needs the agent of the server", given.CacheState)
	}
	config, err := tlsconfig.New(given.TLS, target.CAFile, given.ServerName)
	if err != nil {
		return nil, err
	}
	agent, err := connectAgent(target.Agent)
	if err != nil {
		return nil, err
	}
	program, err := transferProgram(given, target)
	if err != nil {
		return nil, err
	}
	return &transfer.Target{Options: &transfer.Options{
		URL: address, Upload: given.Direction == contract.Upload, Size: given.SizeBytes, Concurrency: given.Concurrency,
		ReadTimeout: milliseconds(given.ReadTimeoutMilliseconds), Attempts: given.Attempts,
		Wait: milliseconds(given.WaitMilliseconds), WaitMaximum: milliseconds(given.MaxWaitMilliseconds),
		Limit: seconds(given.TrialSeconds), VerifyDigest: given.VerifyDigest, Copy: given.CopyContent,
		TLS: config, Program: program, CacheState: given.CacheState, Agent: agent,
	}}, nil
}
