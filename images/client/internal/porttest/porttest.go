// Package porttest provides ports that no other process uses to tests.
package porttest

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// These ports are below those of outgoing connections, and below Kubernetes' node ports.
const first, last = 20_000, 29_999

// Free returns a port that nothing listens on. No other test on this machine gets it until all others were used, so a server may
// stop and listen on it again.
func Free(t *testing.T) int {
	t.Helper()
	port, err := take()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// take moves a cursor in a file that the Python tests also use (tests/ports.py).
func take() (int, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return 0, err
	}
	folder := filepath.Join(cache, "tierbench")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return 0, err
	}
	cursor, err := os.OpenFile(filepath.Join(folder, "ports"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return 0, err
	}
	defer cursor.Close()
	if err := unix.Flock(int(cursor.Fd()), unix.LOCK_EX); err != nil {
		return 0, err
	}
	text, err := io.ReadAll(cursor)
	if err != nil {
		return 0, err
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(text)))
	for range last - first + 1 {
		if err != nil || port < first || port > last {
			port, err = first, nil
		}
		if isFree(port) {
			return port, write(cursor, port+1)
		}
		port++
	}
	return 0, errors.New("no port is free")
}

func write(cursor *os.File, next int) error {
	if err := cursor.Truncate(0); err != nil {
		return err
	}
	_, err := cursor.WriteAt([]byte(strconv.Itoa(next)), 0)
	return err
}

func isFree(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
	if err == nil {
		listener.Close()
	}
	return err == nil
}
