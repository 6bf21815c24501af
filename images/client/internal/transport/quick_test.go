package transport

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

func quickTo(t *testing.T, serve func(net.Conn)) *Conn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		if conn, err := listener.Accept(); err == nil {
			serve(conn)
			conn.Close()
		}
	}()
	made, err := Dial(context.Background(), Options{Address: listener.Addr().String(), Timeout: time.Minute, Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { made.Close() })
	return made
}

// TestEchoExceedingSocketBuffersIsComplete: reads and writes must wait for each other.
func TestEchoExceedingSocketBuffersIsComplete(t *testing.T) {
	made := quickTo(t, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	sent := make([]byte, 32<<20)
	_, _ = rand.Read(sent)
	go func() {
		_, _ = made.Write(sent)
		_ = made.TCP.CloseWrite()
	}()
	back, err := io.ReadAll(made)
	if err != nil || !bytes.Equal(back, sent) {
		t.Errorf("%d bytes of %d came back: %v", len(back), len(sent), err)
	}
}

func TestQuickConnectionEndsAndExpires(t *testing.T) {
	made := quickTo(t, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) })
	_ = made.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := made.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
	_ = made.SetReadDeadline(time.Time{})
	if _, err := made.Write([]byte{1}); err != nil {
		t.Error(err)
	}
	if _, err := made.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
	made.Close()
	if _, err := made.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}
