// Package contracttest checks output against the contract.
package contracttest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"tierbench.io/client/internal/contract"
)

// Check checks the lines that a client printed, and its seal, against the schema and against each other. It returns both.
func Check(t *testing.T, lines, seal []byte) ([]contract.Trial, contract.Seal) {
	t.Helper()
	schema := compiled(t)
	var trials []contract.Trial
	digest := sha256.New()
	for line := range bytes.Lines(lines) {
		validate(t, schema, line)
		var trial contract.Trial
		decode(t, line, &trial)
		if trial.Record == "Trial" {
			digest.Write(line)
			trials = append(trials, trial)
		}
	}
	validate(t, schema, seal)
	var sealed contract.Seal
	decode(t, seal, &sealed)
	if len(seal) > 4096 {
		t.Errorf("the seal has %d bytes, the kubelet keeps 4096", len(seal))
	}
	if want := hex.EncodeToString(digest.Sum(nil)); sealed.SHA256 != want || sealed.Trials != len(trials) {
		t.Errorf("the seal says %d trials, %s; the lines say %d, %s", sealed.Trials, sealed.SHA256, len(trials), want)
	}
	return trials, sealed
}

// Line checks one line against the schema.
func Line(t *testing.T, line []byte) {
	t.Helper()
	validate(t, compiled(t), line)
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile("../../contract.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func validate(t *testing.T, schema *jsonschema.Schema, line []byte) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("%s\n%v", line, err)
	}
}

func decode(t *testing.T, line []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(line, into); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
}
