package transfer

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fast sends until the reader's socket has a mark, and then calls `end`. It returns the reader's side, and how much was
// sent.
func fast(t *testing.T, marked <-chan struct{}, end func(net.Conn)) (*net.TCPConn, <-chan int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	total := make(chan int64, 1)
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); server.Close() })
	go func() {
		chunk, sent, late := make([]byte, 64<<10), int64(0), time.After(hang)
		for {
			select {
			case <-marked:
				total <- sent
				end(server)
				return
			case <-late:
				t.Errorf("no mark in %v: %d bytes are too few for one on this machine", hang, sent)
				total <- sent
				server.Close()
				return
			default:
				number, err := server.Write(chunk)
				if sent += int64(number); err != nil {
					return
				}
			}
		}
	}()
	return conn.(*net.TCPConn), total
}

// marking closes a channel when the watch's socket has a mark.
func marking(w *watch) (marked chan struct{}, look func()) {
	marked = make(chan struct{})
	applied := false
	return marked, func() {
		if w.mark.waits() && !applied {
			applied = true
			close(marked)
		}
	}
}

const (
	endless = 1 << 40
	hang    = time.Minute // longer than anything takes
)

var ways = map[string]func(*net.TCPConn, int64, *watch, func(int64)) error{
	"dropped": drop,
	"copied": func(conn *net.TCPConn, left int64, w *watch, count func(int64)) error {
		return read(conn, left, nil, w, count)
	},
}

func TestDataBelowMarkIsReadSoon(t *testing.T) {
	for name, take := range ways {
		t.Run(name, func(t *testing.T) {
			const little = 1000
			w := &watch{}
			marked, look := marking(w)
			conn, total := fast(t, marked, func(server net.Conn) { _, _ = server.Write(make([]byte, little)) })
			made, err := newWatch(conn, hang)
			if err != nil {
				t.Fatal(err)
			}
			*w = *made
			var received, wanted int64 = 0, endless
			_ = take(conn, endless, w, func(number int64) {
				received += number
				look()
				select {
				case sent := <-total:
					wanted = sent + little
				default:
				}
				if received == wanted {
					conn.Close()
				}
			})
			if received != wanted {
				t.Fatalf("%d of %d bytes", received, wanted)
			}
			if longest := w.longestGap(); longest > hang/2 {
				t.Errorf("the rest was held back for %v", longest)
			}
		})
	}
}

// TestStallBelowMarkIsDetected has a long timeout until all data has arrived, and then a short one.
func TestStallBelowMarkIsDetected(t *testing.T) {
	for name, take := range ways {
		t.Run(name, func(t *testing.T) {
			const timeout = 300 * time.Millisecond
			w := &watch{}
			marked, look := marking(w)
			conn, total := fast(t, marked, func(server net.Conn) { _, _ = server.Write(make([]byte, 1000)) })
			made, err := newWatch(conn, hang)
			if err != nil {
				t.Fatal(err)
			}
			*w = *made
			var received, wanted int64 = 0, endless
			err = take(conn, endless, w, func(number int64) {
				received += number
				look()
				select {
				case sent := <-total:
					wanted = sent + 1000
				default:
				}
				if received == wanted {
					w.timeout = timeout
					_ = conn.SetReadDeadline(time.Now().Add(timeout))
				}
			})
			if longest := w.longestGap(); err == nil || longest < timeout || longest > hang/2 {
				t.Errorf("%v after %v", err, longest)
			}
			if received != wanted {
				t.Errorf("%d of %d bytes were read before that", received, wanted)
			}
		})
	}
}

// TestEndOfFileIsReadAtOnce has a server that leaves the connection open.
func TestEndOfFileIsReadAtOnce(t *testing.T) {
	for name, take := range ways {
		t.Run(name, func(t *testing.T) {
			const file = 64 << 20
			marked := make(chan struct{})
			conn, _ := fast(t, marked, func(net.Conn) {})
			w, err := newWatch(conn, hang)
			if err != nil {
				t.Fatal(err)
			}
			defer close(marked)
			if err := take(conn, file, w, func(int64) {}); err != nil {
				t.Error(err)
			}
			if w.mark.waits() {
				t.Errorf("the mark is still %d", w.mark.value)
			}
		})
	}
}

func TestMarkIsAQuarterOfAMillisecond(t *testing.T) {
	for megabits, wanted := range map[int64]int64{100: 1, 500: 1, 1000: 16 << 10, 2500: 64 << 10, 10_000: 256 << 10, 40_000: 256 << 10} {
		if got := markOf(megabits*1e6/8, time.Second); got != wanted {
			t.Errorf("%d Mbit/s: %d, not %d", megabits, got, wanted)
		}
	}
}

func TestMarkFitsTheSocketBuffer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	option := func(name int) (value int64) {
		_ = raw.Control(func(descriptor uintptr) {
			number, err := unix.GetsockoptInt(int(descriptor), unix.SOL_SOCKET, name)
			if value = int64(number); err != nil {
				t.Fatal(err)
			}
		})
		return value
	}
	one := &mark{socket: raw, value: 1}
	room := option(unix.SO_RCVBUF)
	for _, asked := range []int64{4 << 10, 1 << 30, 1} {
		wanted := min(asked, room/4)
		if one.set(asked); one.value != wanted || option(unix.SO_RCVLOWAT) != wanted {
			t.Errorf("%d requested: %d reported, %d set, not %d", asked, one.value, option(unix.SO_RCVLOWAT), wanted)
		}
	}
	if again := option(unix.SO_RCVBUF); again != room {
		t.Errorf("the buffer has become %d from %d", again, room)
	}
	conn.Close()
	if one.set(4 << 10); one.value != 1 {
		t.Errorf("%d of a closed socket", one.value)
	}
}
