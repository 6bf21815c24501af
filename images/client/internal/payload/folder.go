package payload

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tierbench.io/client/internal/contract"
)

// FromFolder creates a pool of a user's messages: the files of a folder, sorted by name. Its error is a *contract.Failure.
func FromFolder(folder string) (*Pool, error) {
	own, err := messagesIn(folder)
	if err != nil {
		return nil, &contract.Failure{Reason: "MessagesUnusable", Message: err.Error()}
	}
	return &Pool{own: own}, nil
}

func messagesIn(folder string) ([][]byte, error) {
	files, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var found [][]byte
	for _, file := range files {
		if strings.HasPrefix(file.Name(), "..") { // of the kubelet, not a key of the ConfigMap
			continue
		}
		message, err := os.ReadFile(filepath.Join(folder, file.Name()))
		switch {
		case err != nil:
			return nil, err
		case len(message) <= NumberBytes:
			return nil, fmt.Errorf("message %s of %s has %d bytes: use at least %d, because its number replaces the first %d",
				file.Name(), filepath.Base(folder), len(message), NumberBytes+1, NumberBytes)
		}
		found = append(found, message)
	}
	if found == nil {
		return nil, fmt.Errorf("%s has no messages: create a ConfigMap of this name in the benchmark's namespace, each key a message", filepath.Base(folder))
	}
	return found, nil
}
