package transfer

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"tierbench.io/client/internal/contract"
)

const (
	patternBytes = 1 << 20
	firstBytes   = 64 << 10 // of a file are written together with the head of the request
)

// pattern is what every upload repeats. It cannot be compressed, and it costs a trial nothing.
var pattern = sync.OnceValue(func() []byte {
	block := make([]byte, patternBytes)
	_, _ = rand.Read(block) // never fails
	return block
})

// parts calls `take` with the parts of an upload in order, until it fails.
func parts(from, size int64, take func([]byte) error) error {
	for block := pattern(); from < size; {
		part := block[from%patternBytes:]
		part = part[:min(int64(len(part)), size-from)]
		if err := take(part); err != nil {
			return err
		}
		from += int64(len(part))
	}
	return nil
}

// contentDigest returns the SHA-256 of an upload.
func contentDigest(size int64) string {
	digest := sha256.New()
	_ = parts(0, size, func(part []byte) error {
		digest.Write(part) // never fails
		return nil
	})
	return hex.EncodeToString(digest.Sum(nil))
}

// send uploads the whole file, and waits until the server confirms it. A server keeps nothing of an upload that broke off.
func (f *file) send(conn net.Conn) error {
	defer func() { f.longest = max(f.longest, f.uplink.longestGap()) }()
	unsent := f.write(conn)
	if unsent != nil && breaking(unsent) == contract.Stalled {
		return whileReading(unsent)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodPut})
	switch {
	case unsent != nil && (err != nil || response.StatusCode < http.StatusMultipleChoices):
		return whileReading(unsent)
	case err != nil:
		return whileReading(err)
	}
	return f.confirm(response)
}

func (f *file) write(conn net.Conn) error {
	head := fmt.Sprintf("%sContent-Length: %d\r\n\r\n", f.head(http.MethodPut), f.options.Size)
	first := min(f.options.Size, firstBytes)
	if _, err := conn.Write(append([]byte(head), pattern()[:first]...)); err != nil {
		return err
	}
	return parts(first, f.options.Size, func(part []byte) error {
		_, err := conn.Write(part)
		return err
	})
}

// confirm checks whether a response confirms that the server has stored the file.
func (f *file) confirm(response *http.Response) error {
	switch status := response.StatusCode; {
	case status >= http.StatusOK && status < http.StatusMultipleChoices:
		f.received = f.options.Size
		return nil
	case status == http.StatusRequestTimeout:
		return retry(contract.Stalled, errors.New(response.Status))
	case status >= http.StatusInternalServerError:
		return retry(contract.ServerError, errors.New(response.Status))
	}
	return fatal("RequestRefused", fmt.Sprintf("%s: %s", f.address, response.Status))
}
