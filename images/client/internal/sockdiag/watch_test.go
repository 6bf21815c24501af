package sockdiag

import (
	"io"
	"net"
	"testing"
	"time"
)

// listen starts a server that sends back what it receives.
func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("no address %s here: %v", address, err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn); conn.Close() }()
		}
	}()
	return listener
}

func connect(t *testing.T, listener net.Listener) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func exchange(t *testing.T, conn net.Conn, bytes int) {
	t.Helper()
	if _, err := conn.Write(make([]byte, bytes)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, bytes)); err != nil {
		t.Fatal(err)
	}
}

// old returns a watch that has followed the connections to a server for a while, and does not look for others yet.
func old(server net.Listener) *Watch {
	port := uint16(server.Addr().(*net.TCPAddr).Port)
	watch := NewWatch(func(_, remote uint16) bool { return remote == port })
	watch.Look()
	watch.begun, watch.looked = watch.begun.Add(-early-time.Second), time.Now().Add(time.Hour)
	return watch
}

func TestKnownConnectionsAreFollowed(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(address, func(t *testing.T) {
			server := listen(t, address)
			conn := connect(t, server)
			exchange(t, conn, 10)
			watch := old(server)
			cookie := watch.known[0].Cookie()
			exchange(t, conn, 1000)
			watch.wanted = func(uint16, uint16) bool { t.Error("it looked for others"); return false }
			found := watch.Look()
			if len(found) != 1 || !found[0].Established || found[0].Cookie() != cookie || found[0].Info.Bytes_received != 1010 {
				t.Errorf("%+v", found)
			}
		})
	}
}

func TestNewConnectionsAreFoundAfterAPause(t *testing.T) {
	server := listen(t, "127.0.0.1:0")
	connect(t, server)
	watch := old(server)
	connect(t, server)
	if found := watch.Look(); len(found) != 1 {
		t.Errorf("%d before the pause", len(found))
	}
	watch.looked = time.Now().Add(-pause)
	if found := watch.Look(); len(found) != 2 {
		t.Errorf("%d after it", len(found))
	}
}

func TestNextConnectionIsFoundAtOnceAfterTheLastEnded(t *testing.T) {
	server := listen(t, "127.0.0.1:0")
	first := connect(t, server)
	watch := old(server)
	first.(*net.TCPConn).SetLinger(0)
	first.Close()
	connect(t, server)
	if found := watch.Look(); len(found) != 1 {
		t.Errorf("%d connections", len(found))
	}
}

func TestWatchFindsConnectionsInItsFirstSecond(t *testing.T) {
	server := listen(t, "127.0.0.1:0")
	port := uint16(server.Addr().(*net.TCPAddr).Port)
	watch := NewWatch(func(_, remote uint16) bool { return remote == port })
	watch.begun = time.Now().Add(time.Hour)
	for number := 1; number <= 3; number++ {
		connect(t, server)
		if found := watch.Look(); len(found) != number {
			t.Errorf("%d of %d", len(found), number)
		}
	}
}

func TestCompleteWatchSearchesOnlyAfterAPause(t *testing.T) {
	server := listen(t, "127.0.0.1:0")
	port := uint16(server.Addr().(*net.TCPAddr).Port)
	connect(t, server)
	watch := NewWatch(func(_, remote uint16) bool { return remote == port })
	watch.Look()
	watch.begun, watch.looked = time.Now().Add(time.Hour), time.Now().Add(time.Hour)
	connect(t, server)
	watch.Complete()
	if found := watch.Look(); len(found) != 1 {
		t.Errorf("%d before the pause", len(found))
	}
	watch.looked = time.Now().Add(-pause)
	if found := watch.Look(); len(found) != 2 {
		t.Errorf("%d after it", len(found))
	}
}

func TestListenerIsNotCountedAsConnection(t *testing.T) {
	server := listen(t, "127.0.0.1:0")
	port := uint16(server.Addr().(*net.TCPAddr).Port)
	if found := NewWatch(func(local, _ uint16) bool { return local == port }).Look(); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

func BenchmarkAll(b *testing.B) {
	for b.Loop() {
		all()
	}
}

func BenchmarkFollow(b *testing.B) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	port := uint16(listener.Addr().(*net.TCPAddr).Port)
	watch := NewWatch(func(_, remote uint16) bool { return remote == port })
	watch.Look()
	for b.Loop() {
		watch.follow()
	}
}
