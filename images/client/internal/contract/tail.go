package contract

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"sort"
)

const (
	terminationBytes = 4096                                      // that a kubelet keeps of a termination message
	messageRoom      = terminationBytes - len(`,"lines":""`) - 1 // and a newline
	tailBytes        = 64 << 10                                  // of which never more than terminationBytes are left when compressed
)

// tail holds the last lines, for a termination message: the operator reads it where it cannot read the log.
type tail struct {
	lines [][]byte
	size  int
}

func (t *tail) add(line []byte) {
	t.lines = append(t.lines, line)
	for t.size += len(line); t.size > tailBytes; t.lines = t.lines[1:] {
		t.size -= len(t.lines[0])
	}
}

// packed returns as many of the last lines as fit into room when they are compressed.
func (t *tail) packed(room int) string {
	left := sort.Search(len(t.lines), func(from int) bool { return len(pack(t.lines[from:])) <= room })
	if left == len(t.lines) {
		return ""
	}
	return pack(t.lines[left:])
}

func pack(lines [][]byte) string {
	var packed bytes.Buffer
	writer, _ := zlib.NewWriterLevel(&packed, zlib.BestCompression) // the level is valid
	for _, line := range lines {
		_, _ = writer.Write(line) // a buffer takes all
	}
	_ = writer.Close()
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}
