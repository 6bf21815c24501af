package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"tierbench.io/client/internal/contracttest"
	"tierbench.io/client/internal/porttest"
)

func TestCheckPrintsAndSealsOneLine(t *testing.T) {
	address := fmt.Sprintf("127.0.0.1:%d", porttest.Free(t))
	process(t, nil, "check", "--listen", address)
	var printed bytes.Buffer
	log := filepath.Join(t.TempDir(), "log")
	peer := fmt.Sprintf(`{"name": "one", "address": %q, "service": %q, "nodePort": %q, "host": "localhost"}`, address, address, address)
	code := exitCode(t, process(t, &printed, "check", "--peer", peer, "--attempt-seconds", "10", "--seconds", "60", "--termination-log", log))
	if sealed := read(t, log); code != 0 || !bytes.Equal(sealed, printed.Bytes()) {
		t.Errorf("exit code %d: %s, not %s", code, sealed, &printed)
	}
	contracttest.Line(t, printed.Bytes())
	for _, wanted := range []string{`"tcp":"ok"`, `"udp":"ok"`, `"service":"ok"`, `"nodePort":"ok"`, `"dns":"ok"`} {
		if !strings.Contains(printed.String(), wanted) {
			t.Errorf("%s lacks %s", &printed, wanted)
		}
	}
}

func TestCheckRefusesInvalidPeers(t *testing.T) {
	arguments := []string{"check"}
	for range 13 {
		arguments = append(arguments, "--peer", `{"name": "one"}`)
	}
	for _, wrong := range [][]string{arguments, {"check", "--peer", "{}"}, {"check", "--peer", `{"name": "one", "adress": "a"}`}} {
		if code := Main(wrong); code != exitFailure {
			t.Errorf("%v: exit code %d", wrong, code)
		}
	}
}
