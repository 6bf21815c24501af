package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"

	"tierbench.io/client/internal/collect"
	"tierbench.io/client/internal/contract"
)

// ending reports what an engine measured: as text, or as lines of the contract with a seal.
type ending struct {
	output, terminationLog string
	delivery               delivery
	maker                  func() contract.Engine // of the load; nil: this program
}

// delivery says where the lines are delivered if the log cannot be read.
type delivery struct {
	url, tokenFile, pinFile, spool string
	timeout                        int
}

func (d *delivery) add(set *pflag.FlagSet) {
	set.StringVar(&d.url, "collector", "", "URL where the operator takes the lines of --output json")
	set.StringVar(&d.tokenFile, "collector-token-file", "", "file with the token for --collector")
	set.StringVar(&d.pinFile, "collector-pin-file", "", "file with the pin of the collector's key")
	set.IntVar(&d.timeout, "collector-timeout-seconds", 30, "time until the first answer of --collector")
	set.StringVar(&d.spool, "spool", "", "file that keeps the lines until the operator has recorded them")
}

// run prints a series to the log, and delivers what it printed. The seal is written before: the pod may end at any time.
func (d *delivery) run(ctx context.Context, measure func(*contract.Printer) (contract.Seal, error)) error {
	if d.url == "" {
		_, err := measure(contract.NewPrinter(os.Stdout))
		return err
	}
	token, noToken := wordIn("collector-token-file", d.tokenFile)
	pin, noPin := wordIn("collector-pin-file", d.pinFile)
	spool, noSpool := collect.NewSpool(os.Stdout, d.spool)
	seal, err := measure(contract.NewPrinter(spool))
	undelivered := errors.Join(noToken, noPin, noSpool)
	if undelivered == nil {
		collector := collect.New(d.url, token, pin)
		collector.Timeout = time.Duration(d.timeout) * time.Second
		undelivered = collector.Deliver(ctx, spool, seal.Trials)
	}
	if undelivered != nil {
		fmt.Fprintln(os.Stderr, undelivered)
	}
	return err
}

func (e *ending) add(set *pflag.FlagSet) {
	set.StringVar(&e.output, "output", "text", "text, or json: the contract's lines")
	set.StringVar(&e.terminationLog, "termination-log", "", "file for the seal of --output json (a container's termination message)")
	e.delivery.add(set)
}

func (e *ending) check() error {
	if e.output != "text" && e.output != "json" {
		return fmt.Errorf("--output is %q: write text or json", e.output)
	}
	return nil
}

// run runs a series and reports it: as text for a person, and by the contract for a program.
func (e *ending) run(ctx context.Context, text contract.Report, series *contract.Series) error {
	if e.output == "text" {
		err := series.Run(ctx, text)
		if summary, is := text.(interface{ Summarize() }); is {
			summary.Summarize()
		}
		return err
	}
	return e.report(ctx, series.Run)
}

// report prints by the contract what run reports.
func (e *ending) report(ctx context.Context, run func(context.Context, contract.Report) error) error {
	return e.delivery.run(ctx, func(printer *contract.Printer) (contract.Seal, error) {
		printer.Maker = e.maker
		return e.seal(printer, run(ctx, printer))
	})
}

// refuse ends the program before it begins. A seal without trials tells the operator why.
func (e *ending) refuse(err error) error {
	var failure *contract.Failure
	if !errors.As(err, &failure) {
		failure = &contract.Failure{Reason: "InvalidArguments", Message: err.Error()}
	}
	_, err = e.seal(contract.NewPrinter(io.Discard), failure)
	return err
}

// seal writes the termination message about the printed lines, and about err.
func (e *ending) seal(printer *contract.Printer, err error) (contract.Seal, error) {
	var failure *contract.Failure
	switch {
	case errors.Is(err, context.Canceled):
		failure = &contract.Failure{Reason: "Interrupted", Message: "the client received a signal to terminate"}
	case err != nil && !errors.As(err, &failure):
		failure = &contract.Failure{Reason: "ClientError", Message: err.Error()}
	}
	seal := printer.Seal(failure)
	return seal, errors.Join(err, contract.WriteTermination(e.terminationLog, seal))
}
