package outside

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// The files of a member. `current` exists from when it takes its work until the operator has all of its lines.
const (
	membership = "member.json"
	current    = "work.json"
	measured   = "lines"
	ended      = "end.json"
	secrets    = "files"
	locked     = "lock"
)

// Membership is what a machine keeps of the class that it has joined.
type Membership struct {
	URL        string `json:"url"`
	Pin        string `json:"pin"`
	Class      string `json:"class"`
	Key        string `json:"key"` // its secret, which binds its token to it
	Name       string `json:"name"`
	Credential string `json:"credential"`
}

// work is what a member measures for the pod of a stand-in.
type work struct {
	Pod   string            `json:"pod"`
	Plan  string            `json:"plan"`
	Files map[string][]byte `json:"files"`
}

// State is the folder of a member. Only its user can read it.
type State struct{ folder string }

// Open returns the state in a folder, which is created. Another process cannot open it until this one ends.
func Open(folder string) (*State, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	return &State{folder}, lock(filepath.Join(folder, locked))
}

func (s *State) path(name string) string { return filepath.Join(s.folder, name) }

// read returns whether a file exists, and its content.
func (s *State) read(name string, into any) (bool, error) {
	content, err := os.ReadFile(s.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(content, into)
}

// write replaces a file. It has the old or the new content, whenever the machine stops.
func (s *State) write(name string, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(s.folder, name)
	if err != nil {
		return err
	}
	_, failed := file.Write(content)
	if err := errors.Join(failed, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), s.path(name))
}

// begin makes room for the lines of new work.
func (s *State) begin(taken work) (*os.File, error) {
	if err := s.forget(); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(s.path(measured), os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	return file, s.write(current, taken)
}

// forget removes the work. The description is removed first, because the rest is ignored without it.
func (s *State) forget() error {
	var failures []error
	for _, name := range []string{current, ended, measured, secrets} {
		failures = append(failures, os.RemoveAll(s.path(name)))
	}
	return errors.Join(failures...)
}

// reopen returns the lines of work that was begun before a restart, without what the last write has left of a line.
func (s *State) reopen() (*os.File, error) {
	file, err := os.OpenFile(s.path(measured), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(s.path(measured))
	if err == nil {
		err = file.Truncate(int64(whole(content)))
	}
	return file, err
}

// whole returns the number of bytes in complete lines. After a loss of power a file may end with anything.
func whole(content []byte) int {
	size := 0
	for line := range bytes.Lines(content) {
		if !bytes.HasSuffix(line, []byte("\n")) || !json.Valid(line) {
			break
		}
		size += len(line)
	}
	return size
}
