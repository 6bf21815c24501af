package outside

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	fileBytes = 4096
	ofFile    = "File" // the end of the names of a plan's fields that name files
)

// change replaces the strings of a plan, field by field.
func change(plan string, replace func(field, value string) (string, error)) (string, error) {
	decoder := json.NewDecoder(strings.NewReader(plan))
	decoder.UseNumber()
	var document any
	if err := decoder.Decode(&document); err != nil {
		return "", fmt.Errorf("the plan is not JSON: %w", err)
	}
	changed, err := walk("", document, replace)
	if err != nil {
		return "", err
	}
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	err = encoder.Encode(changed)
	return encoded.String(), err
}

func walk(field string, value any, replace func(string, string) (string, error)) (any, error) {
	var err error
	switch found := value.(type) {
	case string:
		return replace(field, found)
	case map[string]any:
		for name := range found {
			if found[name], err = walk(name, found[name], replace); err != nil {
				return nil, err
			}
		}
	case []any:
		for index := range found {
			if found[index], err = walk(field, found[index], replace); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

// filesOf returns the content of the files that a plan names, if they exist.
func filesOf(plan string) (map[string][]byte, error) {
	files := map[string][]byte{}
	_, err := change(plan, func(field, value string) (string, error) {
		if strings.HasSuffix(field, ofFile) && value != "" {
			content, err := os.ReadFile(value)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return value, nil
			case err != nil:
				return "", err
			case len(content) > fileBytes:
				return "", fmt.Errorf("%s has more than %d bytes", value, fileBytes)
			}
			files[value] = content
		}
		return value, nil
	})
	return files, err
}

// localize writes the files of a plan into a folder, and returns the plan with their places and with the addresses of
// servers that this machine uses. A file that did not come with the plan does not exist, so that a plan reads no file
// of this machine.
func localize(plan string, files map[string][]byte, folder string, addresses Addresses) (string, error) {
	if err := os.RemoveAll(folder); err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	places := map[string]string{}
	return change(plan, func(field, value string) (string, error) {
		switch {
		case field == "url":
			return addresses.of(value), nil
		case !strings.HasSuffix(field, ofFile) || value == "":
			return value, nil
		case places[value] == "":
			places[value] = filepath.Join(folder, strconv.Itoa(len(places)))
			if content, is := files[value]; is {
				return places[value], os.WriteFile(places[value], content, 0o600)
			}
		}
		return places[value], nil
	})
}

// Addresses say by which addresses this machine reaches servers: from HOST or HOST:PORT of a plan to another one. An empty key is
// for all hosts.
type Addresses map[string]string

// ParseAddresses parses [FROM=]TO.
func ParseAddresses(given []string) (Addresses, error) {
	addresses := Addresses{}
	for _, one := range given {
		from, to, has := strings.Cut(one, "=")
		if !has {
			from, to = "", one
		}
		if to == "" || strings.ContainsAny(to, "/@ ") {
			return nil, fmt.Errorf("%q is not [FROM=]TO: write a host or host:port for each, as in 10.0.0.5=192.0.2.7", one)
		}
		addresses[from] = to
	}
	return addresses, nil
}

// of returns a URL with the address that this machine uses.
func (a Addresses) of(given string) string {
	parsed, err := url.Parse(given)
	if err != nil || parsed.Host == "" {
		return given
	}
	for _, from := range []string{parsed.Host, parsed.Hostname(), ""} {
		to, is := a[from]
		if !is {
			continue
		}
		if _, _, err := net.SplitHostPort(to); err != nil {
			to = net.JoinHostPort(strings.Trim(to, "[]"), parsed.Port())
		}
		parsed.Host = to
		return parsed.String()
	}
	return given
}
