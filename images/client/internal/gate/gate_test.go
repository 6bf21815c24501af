package gate

import (
	"bufio"
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const timeout = time.Minute

// start serves a gate for a server that writes its PID to a file, and prints that it listens.
func start(t *testing.T) (socket, pidFile string) {
	t.Helper()
	folder := t.TempDir()
	socket, pidFile = filepath.Join(folder, "0"), filepath.Join(folder, "number")
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, socket, []string{"sh", "-c", "echo $$ > " + pidFile + "; echo the server is listening; exec sleep 600"})
	}()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the gate exists", func() bool { _, err := os.Stat(socket); return err == nil })
	return socket, pidFile
}

func hold(t *testing.T, socket string) (held net.Conn) {
	t.Helper()
	eventually(t, "the gate opens", func() bool {
		var err error
		held, err = Hold(t.Context(), socket)
		return err == nil
	})
	t.Cleanup(func() { held.Close() })
	return held
}

func readPID(t *testing.T, pidFile string) int {
	t.Helper()
	content, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func isRunning(pid int) bool {
	_, err := os.Stat("/proc/" + strconv.Itoa(pid))
	return err == nil
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(timeout); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in time", what)
		}
	}
}

func TestServerRunsWhileItsGateIsHeld(t *testing.T) {
	socket, pidFile := start(t)
	if _, err := os.Stat(pidFile); err == nil {
		t.Error("the server runs before its gate is held")
	}
	for range 2 {
		held := hold(t, socket)
		pid := readPID(t, pidFile)
		if !isRunning(pid) {
			t.Fatal("the server does not run")
		}
		held.Close()
		eventually(t, "the server has ended", func() bool { return !isRunning(pid) })
	}
}

func TestLastHolderReplacesEarlierOnes(t *testing.T) {
	socket, pidFile := start(t)
	replaced := hold(t, socket)
	first := readPID(t, pidFile)
	hold(t, socket)
	if second := readPID(t, pidFile); isRunning(first) || !isRunning(second) {
		t.Error("the server of a replaced holder still runs")
	}
	if _, err := bufio.NewReader(replaced).ReadByte(); err == nil {
		t.Error("a replaced holder receives a message")
	}
}

func TestServerEndsWithItsGate(t *testing.T) {
	folder := t.TempDir()
	socket, pidFile := filepath.Join(folder, "0"), filepath.Join(folder, "number")
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, socket, []string{"sh", "-c", "echo $$ > " + pidFile + "; echo listening; exec sleep 600"})
	}()
	hold(t, socket)
	end()
	if err := <-ended; err != nil || isRunning(readPID(t, pidFile)) {
		t.Errorf("%v, or the server still runs", err)
	}
}

func TestServerThatEndsReportsReason(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "0")
	ctx, end := context.WithCancel(context.Background())
	defer end()
	go func() { _ = Serve(ctx, socket, []string{"sh", "-c", "echo no port is free >&2; exit 3"}) }()
	eventually(t, "the gate reports why", func() bool {
		_, err := Hold(ctx, socket)
		return err != nil && strings.Contains(err.Error(), "no port is free")
	})
}
