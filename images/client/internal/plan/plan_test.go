package plan

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

const (
	common = `"contract": 1, "schedule": [{"trial": 1}]`
	small  = `{` + common + `, "kind": "Transfer", "sizeBytes": 5000000000, "targets": [{"url": "http://h/f"}]}`
	broker = `{` + common + `, "kind": "Broker", "targets": [{"url": "mqtt://h:1"}], "load": {"messages": 1}, "pacing": {"type": "OpenLoop", "intervalNanoseconds": 3000000000}`
)

func TestDefaultsAreFilledIn(t *testing.T) {
	read, err := Read(small)
	if err != nil {
		t.Fatal(err)
	}
	given := read.(*TransferPlan)
	if given.SizeBytes != 5e9 || given.Attempts != 20 || given.ReadTimeoutMilliseconds != 1000 || given.CacheState != "Unchanged" || given.Targets[0].Agent.URL != "" {
		t.Errorf("%+v", given)
	}
	read, err = Read(broker + `, "kafka": {"codec": "Lz4"}}`)
	if err != nil {
		t.Fatal(err)
	}
	if other := read.(*BrokerPlan); other.Kafka.Codec != "Lz4" || other.Kafka.BatchBytes != 1<<20 || other.WarmRounds != 20 || other.Pacing.IntervalNanoseconds != 3e9 {
		t.Errorf("%+v", other)
	}
}

func TestTypesHaveExactlyTheFieldsOfTheSchema(t *testing.T) {
	var document struct {
		Definitions definitions `json:"$defs"`
	}
	content, err := os.ReadFile("plan.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &document); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []any{TransferPlan{}, BrokerPlan{}, NetworkPlan{}, BrokerTarget{}, KafkaSettings{}} {
		of, properties := reflect.TypeOf(kind), document.Definitions[reflect.TypeOf(kind).Name()].Properties
		for index := range of.NumField() {
			if name := of.Field(index).Tag.Get("json"); properties[name] == nil {
				t.Errorf("%s.%s is not in the schema", of.Name(), name)
			}
		}
		if of.NumField() != len(properties) {
			t.Errorf("%s has %d fields, the schema %d", of.Name(), of.NumField(), len(properties))
		}
	}
}

func TestInvalidPlanIsReportedWithAHint(t *testing.T) {
	for wrong, says := range map[string]string{
		``:                                  "not JSON",
		`{} {}`:                             "not one JSON document",
		`[]`:                                "kind is absent: write Transfer, Broker or Network",
		`{"kind": "Upload"}`:                `kind is "Upload"`,
		`{"kind": "Transfer"}`:              "the plan lacks",
		strings.Replace(small, "1", "2", 1): "contract is 2: write 1",
		strings.Replace(small, "5000000000", `"5"`, 1):              `sizeBytes is "5": write a whole number from 1 to`,
		strings.Replace(small, "5000000000", "0.5", 1):              "sizeBytes is 0.5: write a whole number",
		strings.Replace(small, "sizeBytes", "size", 1):              `the plan has no field "size": it has attempts, `,
		strings.Replace(small, `"url"`, `"URL"`, 1):                 `targets[0] has no field "URL"`,
		strings.Replace(small, `"http://h/f"`, "3", 1):              "targets[0].url is 3: write a text from 1 to 512 characters",
		strings.Replace(small, `{"trial": 1}`, "", 1):               "schedule is []: write a list from 1 to ",
		strings.Replace(small, `"trial": 1`, `"trial": 0`, 1):       "schedule[0].trial is 0: write a whole number from 1 to 1000",
		broker + `, "kafka": []}`:                                   "kafka is []: write an object",
		broker + `, "connections": "Sometimes"}`:                    `connections is "Sometimes": write "EachTrial", "Kept", "EachMessage"`,
		strings.Replace(small, "}]", "}], \"verifyDigest\": 1", 1):  "verifyDigest is 1: write true or false",
		broker + `, "tls": "SSL"}`:                                  `tls is "SSL": write "None", "TLSv1.2", "TLSv1.3"`,
		broker + `, "content": "` + strings.Repeat("x", 200) + `"}`: `content is "xxx`,
	} {
		if _, err := Read(wrong); err == nil || !strings.Contains(err.Error(), says) || len(err.Error()) > 1000 {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(small)
	f.Add(broker + "}")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = Read(text) })
}
