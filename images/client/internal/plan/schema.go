package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// definitions are the schemas of a plan and its parts, by name.
type definitions map[string]*schema

// schema is the part of JSON Schema that plans use.
type schema struct {
	Reference  string             `json:"$ref"`
	Type       string             `json:"type"`
	Enum       []any              `json:"enum"`
	Default    any                `json:"default"`
	Minimum    int64              `json:"minimum"`
	Maximum    *int64             `json:"maximum"`
	MinLength  int64              `json:"minLength"`
	MaxLength  *int64             `json:"maxLength"`
	MinItems   int64              `json:"minItems"`
	MaxItems   *int64             `json:"maxItems"`
	Items      *schema            `json:"items"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
}

// read returns a value with the defaults of its schema, or says what is wrong with it and what to write. path names the value.
func (d definitions) read(path string, of *schema, value any) (any, error) {
	if of.Reference != "" {
		return d.read(path, d[strings.TrimPrefix(of.Reference, "#/$defs/")], value)
	}
	if len(of.Enum) > 0 && !slices.Contains(texts(of.Enum), show(value)) {
		return nil, fmt.Errorf("%s is %s: write %s", path, show(value), strings.Join(texts(of.Enum), ", "))
	}
	switch of.Type {
	case "object":
		return d.object(path, of, value)
	case "array":
		return d.array(path, of, value)
	case "integer":
		return integer(path, of, value)
	case "string":
		text, is := value.(string)
		if !is || !within(int64(utf8.RuneCountInString(text)), of.MinLength, of.MaxLength) {
			return nil, fmt.Errorf("%s is %s: write a text %s", path, show(value), bounds(of.MinLength, of.MaxLength, " characters"))
		}
	case "boolean":
		if _, is := value.(bool); !is {
			return nil, fmt.Errorf("%s is %s: write true or false", path, show(value))
		}
	}
	return value, nil
}

func (d definitions) object(path string, of *schema, value any) (any, error) {
	given, is := value.(map[string]any)
	if !is {
		return nil, fmt.Errorf("%s is %s: write an object", named(path), show(value))
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if of.Properties[name] == nil {
			known := strings.Join(slices.Sorted(maps.Keys(of.Properties)), ", ")
			return nil, fmt.Errorf("%s has no field %q: it has %s", named(path), name, known)
		}
	}
	complete := map[string]any{}
	for name, child := range of.Properties {
		found, written := given[name]
		switch {
		case !written && slices.Contains(of.Required, name):
			return nil, fmt.Errorf("%s lacks %s: write it", named(path), name)
		case !written && child.Default != nil:
			complete[name] = child.Default
		case written:
			read, err := d.read(strings.TrimPrefix(path+"."+name, "."), child, found)
			if err != nil {
				return nil, err
			}
			complete[name] = read
		}
	}
	return complete, nil
}

func (d definitions) array(path string, of *schema, value any) (any, error) {
	given, is := value.([]any)
	if !is || !within(int64(len(given)), of.MinItems, of.MaxItems) {
		return nil, fmt.Errorf("%s is %s: write a list %s", path, show(value), bounds(of.MinItems, of.MaxItems, " items"))
	}
	complete := make([]any, len(given))
	for index, item := range given {
		read, err := d.read(fmt.Sprintf("%s[%d]", path, index), of.Items, item)
		if err != nil {
			return nil, err
		}
		complete[index] = read
	}
	return complete, nil
}

func integer(path string, of *schema, value any) (any, error) {
	number, is := value.(json.Number)
	found, err := number.Int64()
	if !is || err != nil || !within(found, of.Minimum, of.Maximum) {
		return nil, fmt.Errorf("%s is %s: write a whole number %s", path, show(value), bounds(of.Minimum, of.Maximum, ""))
	}
	return found, nil
}

func within(value, least int64, most *int64) bool {
	return value >= least && (most == nil || value <= *most)
}

// bounds returns the bounds of a value in words.
func bounds(least int64, most *int64, unit string) string {
	if most == nil {
		return fmt.Sprintf("of at least %d%s", least, unit)
	}
	return fmt.Sprintf("from %d to %d%s", least, *most, unit)
}

const shownBytes = 100

// show returns a value as JSON, not all of a long one.
func show(value any) string {
	encoded, err := json.Marshal(value)
	switch {
	case err != nil:
		return err.Error()
	case value == nil:
		return "absent"
	case len(encoded) > shownBytes:
		return string(encoded[:shownBytes]) + "…"
	}
	return string(encoded)
}

func texts(values []any) []string {
	found := make([]string, len(values))
	for index, value := range values {
		found[index] = show(value)
	}
	return found
}

func named(path string) string {
	if path == "" {
		return "the plan"
	}
	return path
}
