package transfer

import (
	"errors"
	"hash"
	"io"
	"net"
	"syscall"
)

const (
	discardBytes = 1 << 20  // asked of the kernel at once when the content is dropped
	readBytes    = 64 << 10 // read at once when it is looked at: more would not stay in the caches of a processor
)

// gathered reads ahead from a connection, so that one system call returns all TLS records that have arrived.
type gathered struct {
	net.Conn
	buffer []byte
	ready  []byte // of the buffer, not given on yet
}

func newGathered(conn net.Conn) *gathered {
	return &gathered{Conn: conn, buffer: make([]byte, readBytes)}
}

func (g *gathered) Read(into []byte) (int, error) {
	if len(g.ready) == 0 {
		number, err := g.Conn.Read(g.buffer)
		if number == 0 {
			return 0, err
		}
		g.ready = g.buffer[:number]
	}
	number := copy(into, g.ready)
	g.ready = g.ready[number:]
	return number, nil
}

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

// read reads `left` bytes, and adds them to `digest` if there is one.
func read(conn net.Conn, left int64, digest hash.Hash, w *watch, count func(int64)) error {
	buffer := make([]byte, readBytes)
	for left > 0 {
		number, err := conn.Read(buffer[:min(left, readBytes)])
		if number > 0 {
			if digest != nil {
				digest.Write(buffer[:number])
			}
			left -= int64(number)
			count(int64(number))
			w.data(int64(number), left)
		}
		switch {
		case err == nil, left == 0, w.early(err):
			continue
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		}
		return err
	}
	return nil
}
