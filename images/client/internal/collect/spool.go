// Package collect delivers what a client has printed to the operator, where the client's log cannot be read.
package collect

import (
	"io"
	"os"
	"sync"
)

// Spool forwards what is printed, and keeps it in a file.
type Spool struct {
	mutex sync.Mutex
	out   io.Writer
	file  *os.File
	size  int64
}

// NewSpool returns a spool that forwards to out. It keeps nothing if the file cannot be created.
func NewSpool(out io.Writer, path string) (*Spool, error) {
	file, err := os.Create(path)
	return &Spool{out: out, file: file}, err
}

// Write implements io.Writer. If the disk is full, it forwards what it cannot keep.
func (s *Spool) Write(data []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.file != nil {
		written, err := s.file.Write(data)
		s.size += int64(written)
		if err != nil {
			s.file = nil
		}
	}
	return s.out.Write(data)
}

// Size returns the number of bytes that are kept.
func (s *Spool) Size() int64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.size
}

// piece returns a few bytes from an offset on.
func (s *Spool) piece(offset int64) ([]byte, error) {
	size := min(s.Size()-offset, pieceBytes)
	if s.file == nil || size <= 0 {
		return nil, nil
	}
	piece := make([]byte, size)
	_, err := s.file.ReadAt(piece, offset)
	return piece, err
}
