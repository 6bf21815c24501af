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

// start serves a gate before a server that writes its number down, and says that it listens.
func start(t *testing.T) (socket, number string) {
	t.Helper()
	folder := t.TempDir()
	socket, number = filepath.Join(folder, "0"), filepath.Join(folder, "number")
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, socket, []string{"sh", "-c", "echo $$ > " + number + "; echo the server is listening; exec sleep 600"})
	}()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the gate is there", func() bool { _, err := os.Stat(socket); return err == nil })
	return socket, number
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

func running(t *testing.T, number string) int {
	t.Helper()
	content, err := os.ReadFile(number)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func isThere(pid int) bool {
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
	socket, number := start(t)
	if _, err := os.Stat(number); err == nil {
		t.Error("it runs without a holder of its gate")
	}
	for range 2 {
		held := hold(t, socket)
		pid := running(t, number)
		if !isThere(pid) {
			t.Fatal("it does not run")
		}
		held.Close()
		eventually(t, "it has ended", func() bool { return !isThere(pid) })
	}
}

func TestLastHolderReplacesEarlierOnes(t *testing.T) {
	socket, number := start(t)
	lost := hold(t, socket)
	first := running(t, number)
	hold(t, socket)
	if second := running(t, number); isThere(first) || !isThere(second) {
		t.Error("the server of a lost holder continues")
	}
	if _, err := bufio.NewReader(lost).ReadByte(); err == nil {
		t.Error("a lost holder gets no message")
	}
}

func TestServerEndsWithItsGate(t *testing.T) {
	folder := t.TempDir()
	socket, number := filepath.Join(folder, "0"), filepath.Join(folder, "number")
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, socket, []string{"sh", "-c", "echo $$ > " + number + "; echo listening; exec sleep 600"})
	}()
	hold(t, socket)
	end()
	if err := <-ended; err != nil || isThere(running(t, number)) {
		t.Errorf("%v, or the server continues", err)
	}
}

func TestServerThatEndsReportsReason(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "0")
	ctx, end := context.WithCancel(context.Background())
	defer end()
	go func() { _ = Serve(ctx, socket, []string{"sh", "-c", "echo no port is free >&2; exit 3"}) }()
	eventually(t, "the gate says why", func() bool {
		_, err := Hold(ctx, socket)
		return err != nil && strings.Contains(err.Error(), "no port is free")
	})
}
