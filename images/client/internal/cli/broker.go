//go:build linux

package cli

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/engine"
	"tierbench.io/client/internal/payload"
	"tierbench.io/client/internal/plan"
	"tierbench.io/client/internal/post"
)

// spareHeap delays garbage collection: a heap of only a few messages would be collected a hundred times per second.
const spareHeap = 32 << 20

const engineCipher = "AES128GCM" // an engine announces its ciphers; the key is the same for all

const mostOfTwoBytes = 32000 // messages in flight, whose numbers repeat

var deliveries = map[string]byte{"AtMostOnce": 0, "AtLeastOnce": 1, "ExactlyOnce": 2}

func plannedBroker(given *plan.BrokerPlan) (*measurement, error) {
	if err := checkPace(given); err != nil {
		return nil, err
	}
	if err := checkBroker(given); err != nil {
		return nil, err
	}
	if err := checkGroup(given); err != nil {
		return nil, err
	}
	content, err := pool(given)
	if err != nil {
		return nil, err
	}
	program, err := newEngine(given, content)
	if err != nil {
		return nil, err
	}
	cases := make([]contract.Case, len(given.Targets))
	for index, target := range given.Targets {
		made, err := brokerTarget(given, &target, content, program)
		if err != nil {
			return nil, fmt.Errorf("targets[%d]: %w", index, err)
		}
		cases[index] = contract.Case{Target: made, Number: target.Case, Deadline: seconds(target.DeadlineSeconds), Check: linkCheck(given.Link, target.Agent)}
	}
	series, err := newSeries(cases, given.WarmupTrials, given.Schedule)
	if err != nil {
		return nil, err
	}
	made := &measurement{series: series, text: contract.NewTextReport(os.Stdout, broker.Words), spareHeap: spareHeap}
	if given.Tuning == broker.Light {
		made.processors = 1
	}
	if program != nil {
		made.engine, made.processors, made.spareHeap = program, 1, 0
	}
	return made, nil
}

func brokerTarget(given *plan.BrokerPlan, target *plan.BrokerTarget, content *payload.Pool, program *engine.Engine) (*broker.Target, error) {
	driver, err := newDriver(given, target, content, program)
	if isAbsent(err) {
		message := err.Error() + ": create the Secret of the broker, and give it this key"
		return nil, &contract.Failure{Reason: "SecretUnusable", Message: message, Case: target.Case}
	}
	if err != nil {
		return nil, err
	}
	key, err := key(given)
	if err != nil {
		return nil, err
	}
	agent, err := connectAgent(target.Agent)
	if err != nil {
		return nil, err
	}
	_, oneWay := driver.(*post.Driver)
	unacknowledged := 0
	if given.Pacing.Type == plan.Acknowledged {
		unacknowledged = given.Pacing.InFlight
	}
	made := &broker.Target{Options: &broker.Options{
		Driver: driver, Topic: target.Topic, Pairs: given.Pairs, FirstPair: given.FirstPair,
		Publishers: given.Group.Publishers, Subscribers: given.Group.Subscribers, Shared: given.Group.Subscription == shared,
		Role: broker.Role(given.Role), Content: content, Seed: uint64(given.Seed), Tuning: given.Tuning,
		Compression: given.Compression, Encryption: given.Encryption, Key: key,
		InFlight: maxInFlight(given), Unacknowledged: unacknowledged, Interval: time.Duration(given.Pacing.IntervalNanoseconds),
		Messages: int64(given.Load.Messages), Duration: seconds(given.Load.DurationSeconds),
		DeliveryTimeout: milliseconds(given.DeliveryTimeoutMilliseconds), Ready: milliseconds(given.ReadyMilliseconds),
		Agent: agent, Barrier: given.Barrier, Part: given.Part, Parts: given.Parts,
		Acknowledges: deliveries[given.Delivery] > 0, OneWay: oneWay, Keeps: given.Connections == plan.Kept, WarmRounds: given.WarmRounds,
	}}
	if given.Connections == plan.EachMessage {
		messenger, is := driver.(broker.Messenger)
		if !is {
			return nil, errors.New("connections is EachMessage, which only MQTT has, and only without an engine: write EachTrial or Kept")
		}
		made.Options.Messenger = messenger
	}
	if program != nil { // the engine encodes
		made.Options.Engine, made.Options.Compression, made.Options.Encryption = program, "None", "None"
	}
	return made, nil
}

var engineName = regexp.MustCompile("^[a-z0-9]+(-[a-z0-9]+)*$")

// newEngine returns the engine of a plan, or nil if the client itself makes the load.
func newEngine(given *plan.BrokerPlan, content *payload.Pool) (*engine.Engine, error) {
	switch {
	case given.Engine == "":
		return nil, nil
	case !engineName.MatchString(given.Engine):
		return nil, fmt.Errorf("engine is %q: write lower-case letters, digits and hyphens", given.Engine)
	}
	return engine.New(given.Engine, content)
}

func pool(given *plan.BrokerPlan) (*payload.Pool, error) {
	if given.ContentFolder != "" {
		return payload.FromFolder(given.ContentFolder)
	}
	made, err := payload.New(given.Content, given.SizeBytes, uint64(given.Seed))
	if err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	return made, nil
}

// maxInFlight returns the messages of a publisher that may be in flight. Without subscribers, those are in flight that are not
// acknowledged.
func maxInFlight(given *plan.BrokerPlan) int {
	limits := given.Pacing.Type == plan.ClosedLoop || given.Pacing.Type == plan.Acknowledged && given.Role == string(broker.Alone)
	if limits {
		return min(given.Pacing.InFlight, given.MaxInFlight)
	}
	return given.MaxInFlight
}

func checkPace(given *plan.BrokerPlan) error {
	pacing, closed := given.Pacing, given.Pacing.Type == plan.ClosedLoop || given.Pacing.Type == plan.Acknowledged
	switch {
	case closed != (pacing.InFlight > 0):
		return fmt.Errorf("pacing.type is %s and inFlight %d: ClosedLoop and Acknowledged need inFlight, no other type has it", pacing.Type, pacing.InFlight)
	case (pacing.Type == plan.OpenLoop) != (pacing.IntervalNanoseconds > 0):
		return fmt.Errorf("pacing.type is %s and intervalNanoseconds %d: OpenLoop needs it, no other type has it", pacing.Type, pacing.IntervalNanoseconds)
	case (given.Load.Messages > 0) == (given.Load.DurationSeconds > 0):
		return errors.New("load has exactly one of messages and durationSeconds")
	case pacing.Type == plan.ClosedLoop && given.Role == string(broker.Alone):
		return errors.New("pacing ClosedLoop waits for messages to come back: with role Alone write Acknowledged")
	case pacing.Type == plan.Acknowledged && deliveries[given.Delivery] == 0:
		return errors.New("pacing Acknowledged waits for acknowledgements, and AtMostOnce has none: write AsFastAsPossible")
	}
	return nil
}

func checkBroker(given *plan.BrokerPlan) error {
	if err := checkParts(given.Part, given.Parts, given.Barrier, given.Targets[0].Agent); err != nil {
		return err
	}
	switch {
	case given.SizeBytes == 2 && given.MaxInFlight > mostOfTwoBytes:
		return fmt.Errorf("maxInFlight is at most %d for messages of 2 bytes, whose numbers repeat", mostOfTwoBytes)
	case given.Role == string(broker.Echo) && given.Parts < 2:
		return errors.New("role Echo needs several parts: it ends when the publishers say so")
	}
	if given.Engine != "" {
		if given.ResumeSessions || given.Targets[0].ClientCertificateFile != "" {
			return errors.New("an engine has neither resumeSessions nor clientCertificateFile: leave out engine")
		}
		return nil // the engine announces what it can do
	}
	_, err := payload.NewCodec(given.Compression, "None", nil)
	return err
}

func key(given *plan.BrokerPlan) ([]byte, error) {
	if given.Encryption == "None" {
		return nil, nil
	}
	found, err := os.ReadFile(given.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("keyFile: %w", err)
	}
	cipher := given.Encryption
	if given.Engine != "" {
		cipher = engineCipher
	}
	_, err = payload.NewCodec("None", cipher, found)
	return found, err
}
