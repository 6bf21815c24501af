package transport

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// quick is a connection whose reads and writes bypass the Go scheduler. They do not block, as the socket does not. Each
// regular system call wakes a thread of the scheduler, which costs more than a message at a light load.
type quick struct {
	*net.TCPConn
	raw syscall.RawConn
}

func newQuick(tcp *net.TCPConn) (*quick, error) {
	raw, err := tcp.SyscallConn()
	return &quick{tcp, raw}, err
}

func (q *quick) Read(into []byte) (number int, err error) {
	if len(into) == 0 {
		return 0, nil
	}
	var failed error
	err = q.raw.Read(func(descriptor uintptr) bool {
		number, failed = call(unix.SYS_READ, descriptor, into)
		return failed != unix.EAGAIN
	})
	switch {
	case err != nil:
		return 0, err
	case failed != nil:
		return 0, os.NewSyscallError("read", failed)
	case number == 0:
		return 0, io.EOF
	}
	return number, nil
}

func (q *quick) Write(bytes []byte) (written int, err error) {
	var failed error
	err = q.raw.Write(func(descriptor uintptr) bool {
		for written < len(bytes) && failed == nil {
			var number int
			number, failed = call(unix.SYS_WRITE, descriptor, bytes[written:])
			written += number
		}
		if failed == unix.EAGAIN {
			failed = nil
			return false
		}
		return true
	})
	if err == nil && failed != nil {
		err = os.NewSyscallError("write", failed)
	}
	return written, err
}

// call reads into bytes that are not empty, or writes them.
func call(which, descriptor uintptr, bytes []byte) (int, error) {
	for {
		number, _, errno := unix.RawSyscall(which, descriptor, uintptr(unsafe.Pointer(&bytes[0])), uintptr(len(bytes)))
		switch errno {
		case 0:
			return int(number), nil
		case unix.EINTR:
			continue
		}
		return 0, errno
	}
}
