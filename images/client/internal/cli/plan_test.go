package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// targetFields are the fields of each target. Tests write each once for all targets, or once for each.
var targetFields = []string{
	"url", "server", "pingHost", "topic", "usernameFile", "passwordFile", "caFile", "clientCertificateFile",
	"clientKeyFile", "case", "deadlineSeconds",
	"agent.url", "agent.tokenFile", "agent.pinFile",
}

// short maps short words of tests to several fields.
var short = map[string]func(value string) map[string]string{
	"inFlight":             func(value string) map[string]string { return pace("ClosedLoop", "inFlight", value) },
	"unacknowledged":       func(value string) map[string]string { return pace("Acknowledged", "inFlight", value) },
	"asFastAsPossible":     func(string) map[string]string { return pace("AsFastAsPossible", "inFlight", "0") },
	"intervalMilliseconds": func(value string) map[string]string { return pace("OpenLoop", "intervalNanoseconds", value+"000000") },
	"messagesPerSecond": func(value string) map[string]string {
		rate, _ := strconv.Atoi(value)
		return pace("OpenLoop", "intervalNanoseconds", strconv.Itoa(1e9/rate))
	},
	"messages": func(value string) map[string]string { return map[string]string{"load.messages": value} },
}

func pace(kind, field, value string) map[string]string {
	return map[string]string{"pacing.type": kind, "pacing." + field: value}
}

// inPlan returns the arguments to measure a plan of a kind with these fields, written as pairs=3 or kafka.codec=Lz4. A
// word that begins with -- is a flag. trials is a schedule: FIRST-LAST of every target in turn, or CASE:FIRST-LAST,
// with commas between.
func inPlan(t *testing.T, kind string, words []string) []string {
	t.Helper()
	arguments, document := []string{"measure"}, map[string]any{"contract": 1, "kind": kind}
	of, trials := map[string][]string{}, "1"
	for _, word := range words {
		name, value, given := strings.Cut(word, "=")
		if !given {
			value = "true"
		}
		fields, is := short[name]
		switch {
		case strings.HasPrefix(word, "--"):
			arguments = append(arguments, word)
		case name == "trials":
			trials = value
		case slices.Contains(targetFields, name):
			of[name] = append(of[name], value)
		case is && kind == "Broker":
			for path, value := range fields(value) {
				set(document, path, value)
			}
		case kind == "Broker" && name == "durationSeconds":
			set(document, "load.durationSeconds", value)
		default:
			set(document, name, value)
		}
	}
	number := max(1, len(of["url"]), len(of["server"]))
	var targets []map[string]any
	for index := range number {
		target := map[string]any{}
		if number > 1 {
			target["case"] = index + 1
		}
		for _, name := range slices.Sorted(maps.Keys(of)) {
			set(target, name, of[name][min(index, len(of[name])-1)])
		}
		targets = append(targets, target)
	}
	document["targets"], document["schedule"] = targets, schedule(t, trials, targets)
	encoded, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return append(arguments, "--plan="+string(encoded))
}

// set sets the field with a path, as in kafka.codec.
func set(document map[string]any, path, text string) {
	name, rest, below := strings.Cut(path, ".")
	if below {
		inner, _ := document[name].(map[string]any)
		if inner == nil {
			inner = map[string]any{}
			document[name] = inner
		}
		set(inner, rest, text)
		return
	}
	number, err := strconv.ParseInt(text, 10, 64)
	switch {
	case name == "refusedNetworks" || name == "allowedHosts":
		document[name] = strings.Split(text, ",")
	case err == nil && name != "version":
		document[name] = number
	case text == "true" || text == "false":
		document[name] = text == "true"
	default:
		document[name] = text
	}
}

func schedule(t *testing.T, trials string, targets []map[string]any) []map[string]any {
	t.Helper()
	var made []map[string]any
	for item := range strings.SplitSeq(trials, ",") {
		of, numbers, isOfOne := strings.Cut(item, ":")
		if !isOfOne {
			numbers = item
		}
		first, last, _ := strings.Cut(numbers+"-"+numbers, "-")
		last, _, _ = strings.Cut(last, "-")
		for trial := atoi(t, first); trial <= atoi(t, last); trial++ {
			for _, target := range targets {
				one := map[string]any{"trial": trial}
				if number, numbered := target["case"]; numbered {
					one["case"] = number
				}
				if !isOfOne || fmt.Sprint(target["case"]) == of {
					made = append(made, one)
				}
			}
		}
	}
	return made
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	number, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return number
}
