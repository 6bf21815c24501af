package porttest

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// cursorAt gives a test its own cursor.
func cursorAt(t *testing.T, text string) (file string) {
	t.Helper()
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	file = filepath.Join(cache, "tierbench", "ports")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPortsAreSequentialAndFree(t *testing.T) {
	taken := Free(t)
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(taken)))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	file := cursorAt(t, strconv.Itoa(taken))
	one, other := Free(t), Free(t)
	if one == taken || other == one {
		t.Errorf("%d and %d were given out where %d is taken", one, other, taken)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != strconv.Itoa(other+1) {
		t.Errorf("the file says %s (%v) after %d", text, err, other)
	}
}

func TestPortsWrapAround(t *testing.T) {
	for _, text := range []string{strconv.Itoa(last + 1), "1", "", "nonsense"} {
		cursorAt(t, text)
		if port := Free(t); port < first || port > first+1000 {
			t.Errorf("%d after %q", port, text)
		}
	}
}
