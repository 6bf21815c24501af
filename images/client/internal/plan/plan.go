// Package plan reads what a client does: the trial plan of the contract with the operator.
//
// types.go and plan.schema.json are generated from the operator's models.
package plan

import (
	"bytes"
	_ "embed" // the schema
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Kinds of plans.
const (
	Transfer = "Transfer"
	Broker   = "Broker"
	Network  = "Network"
)

// Pacings of publishers.
const (
	ClosedLoop       = "ClosedLoop"
	Acknowledged     = "Acknowledged"
	OpenLoop         = "OpenLoop"
	AsFastAsPossible = "AsFastAsPossible"
)

// Lifetimes of connections, in addition to EachTrial.
const (
	Kept        = "Kept"
	EachMessage = "EachMessage"
)

//go:embed plan.schema.json
var generated []byte

// Read returns a plan, a *TransferPlan, *BrokerPlan or *NetworkPlan, with defaults for what it leaves out.
func Read(text string) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	var given any
	if err := decoder.Decode(&given); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it is not one JSON document")
	}
	fields, _ := given.(map[string]any)
	read, known := map[any]any{Transfer: &TransferPlan{}, Broker: &BrokerPlan{}, Network: &NetworkPlan{}}[fields["kind"]]
	if !known {
		return nil, fmt.Errorf("kind is %s: write %s, %s or %s", show(fields["kind"]), Transfer, Broker, Network)
	}
	var document struct {
		Definitions definitions `json:"$defs"`
	}
	if err := json.Unmarshal(generated, &document); err != nil {
		return nil, err
	}
	complete, err := document.Definitions.read("", document.Definitions[fields["kind"].(string)+"Plan"], given)
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(complete)
	if err != nil {
		return nil, err
	}
	return read, json.Unmarshal(encoded, read)
}
