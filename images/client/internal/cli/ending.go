package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"tierbench.io/client/internal/contract"
)

// ending reports what an engine measured: as text, or as lines of the contract with a seal.
type ending struct {
	output, terminationLog string
}

func (e *ending) add(set *pflag.FlagSet) {
	set.StringVar(&e.output, "output", "text", "text, or json: the contract's lines")
	set.StringVar(&e.terminationLog, "termination-log", "", "file for the seal of --output json (a container's termination message)")
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
	printer := contract.NewPrinter(os.Stdout)
	return e.seal(printer, series.Run(ctx, printer))
}

// refuse ends the program before it begins. A seal without trials tells the operator why.
func (e *ending) refuse(err error) error {
	var failure *contract.Failure
	if !errors.As(err, &failure) {
		failure = &contract.Failure{Reason: "InvalidArguments", Message: err.Error()}
	}
	return e.seal(contract.NewPrinter(io.Discard), failure)
}

// seal writes the termination message about the printed lines, and about err.
func (e *ending) seal(printer *contract.Printer, err error) error {
	var failure *contract.Failure
	switch {
	case errors.Is(err, context.Canceled):
		failure = &contract.Failure{Reason: "Interrupted", Message: "the client received a signal to terminate"}
	case err != nil && !errors.As(err, &failure):
		failure = &contract.Failure{Reason: "ClientError", Message: err.Error()}
	}
	return errors.Join(err, contract.WriteTermination(e.terminationLog, printer.Seal(failure)))
}
