// Package lowwater lets the kernel wake the reader of a socket for many bytes at a time: SO_RCVLOWAT, socket(7).
package lowwater

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const partOfBuffer = 4 // a mark that the receive buffer cannot hold is never reached

// Set asks to be woken for so many bytes, or for fewer where the socket's receive buffer is small, and gives how many those
// are: 1 for any, and where the kernel takes no mark.
func Set(socket syscall.RawConn, bytes int64) int64 {
	mark := int64(1)
	_ = socket.Control(func(descriptor uintptr) {
		if bytes > 1 {
			room, err := unix.GetsockoptInt(int(descriptor), unix.SOL_SOCKET, unix.SO_RCVBUF)
			if err != nil {
				return
			}
			bytes = max(1, min(bytes, int64(room)/partOfBuffer))
		}
		if unix.SetsockoptInt(int(descriptor), unix.SOL_SOCKET, unix.SO_RCVLOWAT, int(bytes)) == nil {
			mark = bytes
		}
	})
	return mark
}
