package engine

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

const (
	logBytes  = 64 << 10 // that are forwarded
	tailBytes = 300      // in the message of a failure
)

// log forwards what an engine writes to its standard error, up to a bound, and keeps its end.
type log struct {
	out io.Writer

	mutex  sync.Mutex
	passed int
	kept   []byte
}

func (l *log) Write(text []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if room := min(logBytes-l.passed, len(text)); room > 0 {
		_, _ = l.out.Write(text[:room])
		if l.passed += room; l.passed == logBytes {
			fmt.Fprintf(l.out, "\nthe engine wrote more than %d bytes: the rest is left out\n", logBytes)
		}
	}
	l.kept = append(l.kept, text[max(0, len(text)-tailBytes):]...)
	l.kept = bytes.Clone(l.kept[max(0, len(l.kept)-tailBytes):])
	return len(text), nil
}

// tail returns the last line of the log, for a message.
func (l *log) tail() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	lines := bytes.Split(bytes.TrimSpace(l.kept), []byte("\n"))
	if last := lines[len(lines)-1]; len(last) > 0 {
		return ": " + string(last)
	}
	return ""
}
