//go:build !linux

package transfer

import (
	"errors"
	"net"
	"os"
)

// drop reads `left` bytes of a TCP connection. Only Linux drops them without copying them.
func drop(conn *net.TCPConn, left int64, w *watch, count func(int64)) error {
	return read(conn, left, nil, w, count)
}

// set sets no mark: systems other than Linux wake the reader for all data.
func (m *mark) set(int64) {}

// inMemory returns an error: only Linux has such files.
func inMemory(string) (*os.File, error) { return nil, errors.ErrUnsupported }
