package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"tierbench.io/client/internal/agentclient"
	"tierbench.io/client/internal/contract"
)

// seriesFlags name the trials and their order. A flag of targets is given once for all targets, or once for each.
type seriesFlags struct {
	trials                              string
	warmup                              int
	cases, deadlines                    []int
	agent, agentTokenFile, agentPinFile []string
}

func (f *seriesFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.trials, "trials", "1-1", "trials to run, in order: FIRST-LAST of each target in turn, or CASE:TRIAL,CASE:TRIAL,…")
	set.IntVar(&f.warmup, "warmup", 0, "trials of each target before them that do not count")
	set.IntSliceVar(&f.cases, "case", nil, "number of the case that a target measures; repeat it for each target")
	set.IntSliceVar(&f.deadlines, "deadline-seconds", nil, "how long all trials of a target may take together; again for each")
	set.StringArrayVar(&f.agent, "agent", nil, "URL of the agent of the server; repeat it for each target")
	set.StringArrayVar(&f.agentTokenFile, "agent-token-file", nil, "file with the agent's token; again for each target")
	set.StringArrayVar(&f.agentPinFile, "agent-pin-file", nil, "file with the pin of the agent's key, sha256//BASE64; again for each target")
}

// of returns the value of a flag for one of the targets.
func of[Value any](values []Value, target int) Value {
	var none Value
	switch {
	case len(values) == 0:
		return none
	case len(values) == 1:
		return values[0]
	}
	return values[target]
}

// series returns the trials of all targets.
func (f *seriesFlags) series(number int, target func(index int, agent *agentclient.Agent) (contract.Target, error)) (*contract.Series, error) {
	if f.warmup < 0 {
		return nil, errors.New("--warmup cannot be negative")
	}
	cases, err := f.numbers(number)
	if err != nil {
		return nil, err
	}
	counted, err := parseTurns(f.trials, cases)
	if err != nil {
		return nil, err
	}
	series := &contract.Series{}
	for index := range number {
		agent, err := f.connectAgent(index)
		if err != nil {
			return nil, err
		}
		made, err := target(index, agent)
		if err != nil {
			return nil, err
		}
		deadline := time.Duration(of(f.deadlines, index)) * time.Second
		series.Cases = append(series.Cases, contract.Case{Target: made, Number: cases[index], Deadline: deadline})
	}
	for trial := range f.warmup {
		for index := range number {
			series.Turns = append(series.Turns, contract.Turn{Case: index, Number: trial + 1, Warmup: true})
		}
	}
	series.Turns = append(series.Turns, counted...)
	return series, nil
}

// connectAgent returns the client of a target's agent, or nil if it has none.
func (f *seriesFlags) connectAgent(target int) (*agentclient.Agent, error) {
	url := of(f.agent, target)
	if url == "" {
		return nil, nil
	}
	token, noToken := wordIn("agent-token-file", of(f.agentTokenFile, target))
	pin, noPin := wordIn("agent-pin-file", of(f.agentPinFile, target))
	switch {
	case noToken != nil || noPin != nil:
		return nil, errors.Join(noToken, noPin)
	case token == "" || pin == "":
		return nil, errors.New("--agent needs --agent-token-file and --agent-pin-file, files with the agent's token and the pin of its key")
	case !strings.HasPrefix(url, "https://"):
		return nil, fmt.Errorf("--agent is %q: write https://HOST:PORT", url)
	}
	return agentclient.New(strings.TrimSuffix(url, "/"), token, pin), nil
}

// numbers returns the numbers of the cases: the given ones, or 1, 2, 3 … for several cases, or none for one.
func (f *seriesFlags) numbers(number int) ([]int, error) {
	for flag, given := range map[string]int{
		"case": len(f.cases), "deadline-seconds": len(f.deadlines), "agent": len(f.agent),
		"agent-token-file": len(f.agentTokenFile), "agent-pin-file": len(f.agentPinFile),
	} {
		if err := perTarget(flag, given, number); err != nil {
			return nil, err
		}
	}
	cases := f.cases
	if len(cases) == 0 && number == 1 {
		return []int{0}, nil
	}
	for index := len(cases); index < number && len(f.cases) == 0; index++ {
		cases = append(cases, index+1)
	}
	sorted := slices.Sorted(slices.Values(cases))
	if len(slices.Compact(sorted)) != number || sorted[0] < 1 {
		return nil, fmt.Errorf("--case is %v: write another number above 0 for each of the %d targets", f.cases, number)
	}
	return cases, nil
}

// perTarget rejects a flag that is given neither once nor once per target.
func perTarget(flag string, given, targets int) error {
	if given > 1 && given != targets {
		return fmt.Errorf("--%s is given %d times for %d targets: give it once, or for each", flag, given, targets)
	}
	return nil
}

// parseTurns parses FIRST-LAST (all cases in turn) and CASE:TRIAL, separated by commas.
func parseTurns(text string, cases []int) ([]contract.Turn, error) {
	var turns []contract.Turn
	for item := range strings.SplitSeq(text, ",") {
		given, trials, isOfOne := strings.Cut(item, ":")
		of := cases
		if isOfOne {
			number, err := strconv.Atoi(given)
			if err != nil || !slices.Contains(cases, number) {
				return nil, fmt.Errorf("--trials has %q: there is no --case %s", item, given)
			}
			of = []int{number}
		} else {
			trials = item
		}
		first, last, err := parseRange(trials)
		if err != nil {
			return nil, err
		}
		for trial := first; trial <= last; trial++ {
			for _, number := range of {
				turns = append(turns, contract.Turn{Case: slices.Index(cases, number), Number: trial})
			}
		}
	}
	return turns, nil
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
