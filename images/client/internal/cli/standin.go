package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"tierbench.io/client/internal/outside"
)

// standIn is what a pod needs to offer its plan to members outside the cluster.
type standIn struct {
	class, plan, signature, work string
	absent, silent               int
	end                          ending
}

func standInCommand() *cobra.Command {
	given := &standIn{}
	command := &cobra.Command{
		Use:   "stand-in --plan JSON --class CLASS --work URL",
		Short: "Offer a trial plan to the members of an external class, and print what one of them measures",
		Long: `Offers a trial plan, with the files that it names, to the operator. A member of the class outside the cluster measures it
(tierbench-client join). This program prints the lines and ends as if it had measured.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			source, err := given.source()
			if err != nil {
				return given.end.refuse(err)
			}
			given.end.maker = source.Engine
			return given.end.report(command.Context(), source.Run)
		},
	}
	set := command.Flags()
	set.StringVar(&given.plan, "plan", "", "the trial plan")
	set.StringVar(&given.class, "class", "", "the external class")
	set.StringVar(&given.signature, "signature", "", "the operator's signature of the plan")
	set.StringVar(&given.work, "work", "", "URL where the operator takes the offer")
	set.IntVar(&given.absent, "absent-seconds", 60, "time until a member takes the work")
	set.IntVar(&given.silent, "silent-seconds", 600, "time for which a member that measures may be silent")
	given.end.add(set)
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return given.end.refuse(fmt.Errorf("%w: see tierbench-client stand-in --help", err))
	})
	return command
}

func (s *standIn) source() (*outside.StandIn, error) {
	token, noToken := wordIn("collector-token-file", s.end.delivery.tokenFile)
	pin, noPin := wordIn("collector-pin-file", s.end.delivery.pinFile)
	if err := errors.Join(s.end.check(), noToken, noPin); err != nil {
		return nil, err
	}
	if s.end.output != "json" || s.work == "" {
		return nil, errors.New("a stand-in needs --output json and --work")
	}
	source := outside.NewStandIn(s.work, token, pin)
	source.Class, source.Plan, source.Signature = s.class, s.plan, s.signature
	source.Absent, source.Silent = seconds(s.absent), seconds(s.silent)
	return source, nil
}
