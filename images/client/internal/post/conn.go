package post

import (
	"bufio"
	"io"
	"net/http"

	"tierbench.io/client/internal/transport"
)

const largestResponse = 1 << 20

// conn carries one request at a time.
type conn struct {
	*transport.Conn
	limit  *io.LimitedReader
	reader *bufio.Reader
}

func newConn(over *transport.Conn) *conn {
	limit := &io.LimitedReader{R: over}
	return &conn{Conn: over, limit: limit, reader: bufio.NewReader(limit)}
}

// response reads a whole response. It returns the status, and whether the connection ends with it.
func (c *conn) response() (status int, last bool, err error) {
	c.limit.N = largestResponse
	for status < http.StatusOK { // before the response there may be others
		response, err := http.ReadResponse(c.reader, nil)
		if err != nil {
			return 0, true, err
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return 0, true, err
		}
		status, last = response.StatusCode, response.Close
	}
	return status, last, nil
}
