package lowwater

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAMarkIsOneThatTheSocketCanHold(t *testing.T) {
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
	room := option(unix.SO_RCVBUF)
	for _, asked := range []int64{4 << 10, 1 << 30, 1} {
		wanted := min(asked, room/4)
		if set := Set(raw, asked); set != wanted || option(unix.SO_RCVLOWAT) != wanted {
			t.Errorf("%d asked: %d said, %d set, not %d", asked, set, option(unix.SO_RCVLOWAT), wanted)
		}
	}
	if again := option(unix.SO_RCVBUF); again != room {
		t.Errorf("the buffer has become %d from %d", again, room)
	}
	conn.Close()
	if set := Set(raw, 4<<10); set != 1 {
		t.Errorf("%d of a closed socket", set)
	}
}
