package transfer

import (
	"errors"
	"hash"
	"io"
	"net"
)

const readBytes = 64 << 10 // read at once when the content is needed: more would not stay in the caches of a processor

// gathered reads ahead from a connection, so that one system call returns all TLS records that have arrived.
type gathered struct {
	net.Conn
	buffer []byte
	ready  []byte // of the buffer, not returned yet
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
