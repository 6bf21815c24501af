package transfer

import (
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	discardBytes = 1 << 20 // asked of the kernel at once when the content is dropped
	partOfBuffer = 4       // a mark that the receive buffer cannot hold is never reached
)

// drop discards `left` bytes of a TCP connection without copying them: with MSG_TRUNC the kernel counts and drops them.
func drop(conn *net.TCPConn, left int64, w *watch, count func(int64)) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	buffer := make([]byte, discardBytes) // its length matters, nothing is written to it
	for left > 0 {
		var number int
		var failure error
		err := raw.Read(func(fd uintptr) bool {
			number, _, failure = syscall.Recvfrom(int(fd), buffer[:min(left, discardBytes)], syscall.MSG_TRUNC|syscall.MSG_DONTWAIT)
			return failure != syscall.EAGAIN
		})
		switch {
		case err != nil && w.early(err), failure == syscall.EINTR:
			continue
		case err != nil:
			return err
		case failure != nil:
			return failure
		case number == 0:
			return io.ErrUnexpectedEOF
		}
		left -= int64(number)
		count(int64(number))
		w.data(int64(number), left)
	}
	return nil
}

// set sets the mark, at most to what the receive buffer can hold. It keeps the old mark if the kernel refuses the new one.
func (m *mark) set(value int64) {
	if m.socket == nil {
		return
	}
	_ = m.socket.Control(func(descriptor uintptr) {
		room, err := syscall.GetsockoptInt(int(descriptor), syscall.SOL_SOCKET, syscall.SO_RCVBUF)
		if err != nil {
			return
		}
		value = max(1, min(value, int64(room)/partOfBuffer))
		if syscall.SetsockoptInt(int(descriptor), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, int(value)) == nil {
			m.value = value
		}
	})
}

// inMemory returns a file that no folder has.
func inMemory(name string) (*os.File, error) {
	descriptor, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	return os.NewFile(uintptr(descriptor), name), err
}
