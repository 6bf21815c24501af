package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tierbench.io/client/internal/agentclient"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/plan"
)

// measurement is what a plan asks for.
type measurement struct {
	series     *contract.Series
	text       contract.Report // for a person
	processors int             // that the program uses; 0: all
	spareHeap  int             // bytes that are never touched, so that garbage is collected rarely
	engine     program         // that makes the load; nil: this program
}

// program is an engine outside this program.
type program interface {
	Maker() contract.Engine
	Close()
}

func measureCommand() *cobra.Command {
	var given string
	end := &ending{}
	command := &cobra.Command{
		Use:   "measure --plan JSON",
		Short: "Measure what a trial plan says, trial after trial",
		Long: `Reads a trial plan, a JSON document, and measures each trial of its schedule. docs/reference/trial-plan.md describes the
fields. The kind of a plan is Transfer (a file over HTTP, with the semantics of wget), Broker (messages through MQTT, Kafka or HTTP) or
Network (ping, then iperf3; both programs must be installed).`,
		Example: `  tierbench-client measure --plan '{"contract": 1, "kind": "Transfer", "sizeBytes": 1048576, "schedule": [{"trial": 1}],
    "targets": [{"url": "http://server:8080/1048576.bin"}]}'`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return measure(command.Context(), given, end) },
	}
	command.Flags().StringVar(&given, "plan", "", "the trial plan")
	end.add(command.Flags())
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return end.refuse(fmt.Errorf("%w: see tierbench-client measure --help", err))
	})
	return command
}

func measure(ctx context.Context, given string, end *ending) error {
	if err := end.check(); err != nil {
		return end.refuse(err)
	}
	made, err := planned(given)
	if err != nil {
		return end.refuse(fmt.Errorf("--plan: %w", err))
	}
	return made.run(func() error {
		if made.engine != nil {
			end.maker = made.engine.Maker
		}
		return end.run(ctx, made.text, made.series)
	})
}

// run calls a function with the processors and the memory that the measurement needs.
func (m *measurement) run(call func() error) error {
	if before := runtime.GOMAXPROCS(0); m.processors > 0 {
		runtime.GOMAXPROCS(min(before, m.processors))
		defer runtime.GOMAXPROCS(before)
	}
	spare := make([]byte, m.spareHeap)
	defer runtime.KeepAlive(spare)
	if m.engine != nil {
		defer m.engine.Close()
	}
	return call()
}

// planned returns what a plan asks for.
func planned(given string) (*measurement, error) {
	read, err := plan.Read(given)
	if err != nil {
		return nil, err
	}
	switch found := read.(type) {
	case *plan.TransferPlan:
		return plannedTransfer(found)
	case *plan.BrokerPlan:
		return plannedBroker(found)
	case *plan.NetworkPlan:
		return plannedNetwork(found)
	}
	return nil, fmt.Errorf("a plan of the type %T", read)
}

// newSeries returns the warm-up trials of all cases, then the trials of the schedule.
func newSeries(cases []contract.Case, warmupTrials int, schedule []plan.PlannedTrial) (*contract.Series, error) {
	series, places := &contract.Series{Cases: cases}, map[int]int{}
	for index, one := range cases {
		if _, twice := places[one.Number]; twice {
			return nil, fmt.Errorf("targets[%d].case is %d, as of another target: write another number above 0 for each target", index, one.Number)
		}
		places[one.Number] = index
	}
	for trial := range warmupTrials {
		for index := range cases {
			series.Turns = append(series.Turns, contract.Turn{Case: index, Number: trial + 1, Warmup: true})
		}
	}
	for index, one := range schedule {
		place, known := places[one.Case]
		if !known {
			return nil, fmt.Errorf("schedule[%d].case is %d: no target has this case", index, one.Case)
		}
		series.Turns = append(series.Turns, contract.Turn{Case: place, Number: one.Trial})
	}
	return series, nil
}

// connectAgent returns the client of a target's agent, or nil if it has none.
func connectAgent(access plan.AgentAccess) (*agentclient.Agent, error) {
	if access.URL == "" {
		return nil, nil
	}
	token, noToken := wordIn("agent.tokenFile", access.TokenFile)
	pin, noPin := wordIn("agent.pinFile", access.PinFile)
	switch {
	case noToken != nil || noPin != nil:
		return nil, errors.Join(noToken, noPin)
	case token == "" || pin == "":
		return nil, errors.New("agent needs tokenFile and pinFile, files with the agent's token and the pin of its key")
	case !strings.HasPrefix(access.URL, "https://"):
		return nil, fmt.Errorf("agent.url is %q: write https://HOST:PORT", access.URL)
	}
	return agentclient.New(strings.TrimSuffix(access.URL, "/"), token, pin), nil
}

// checkParts rejects parts that cannot meet.
func checkParts(part, parts int, barrier string, agent plan.AgentAccess) error {
	switch {
	case part >= parts:
		return fmt.Errorf("part is %d of %d parts: parts count from 0", part, parts)
	case parts > 1 && (agent.URL == "" || barrier == ""):
		return errors.New("several parts need barrier and agent, where they meet")
	}
	return nil
}

// wordIn returns the content of a file without surrounding space. It is empty if no file is named.
func wordIn(field, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", field, err)
	}
	return strings.TrimSpace(string(content)), nil
}

func milliseconds(number int) time.Duration { return time.Duration(number) * time.Millisecond }

func seconds(number int) time.Duration { return time.Duration(number) * time.Second }
