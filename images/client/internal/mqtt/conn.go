package mqtt

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"tierbench.io/client/internal/tcpinfo"
	"tierbench.io/client/internal/transport"
)

const (
	readBuffer = 64 << 10
	mostQueued = 1 << 20 // bytes that wait to be written before a writer has to wait, too
	lengthBits = 28      // of the length of a packet
	lastWrite  = time.Second
	envelope   = 64 << 10 // bytes of a packet besides its message: topic, properties, and what codec and cipher add
)

// conn reads in large pieces. If it gathers, it writes in one call what several callers have queued.
type conn struct {
	net.Conn
	gathers bool
	over    *transport.Conn
	reader  *bufio.Reader
	framing framing
	closed  func(tcpinfo.Counters)
	wrote   atomic.Bool // since the last check

	mutex  sync.Mutex
	work   *sync.Cond // there is something to write, or no more will be written
	room   *sync.Cond // there is room to queue more
	queued []byte
	failed error
	ended  bool
	done   chan struct{} // everything was written
}

// framing parses the packets of a connection: a type, the length of the rest with seven bits per byte, and the rest.
type framing struct {
	most   int // bytes that a packet may have
	left   int // of the rest
	length int
	shift  int // of the next byte of the length
	typed  bool
}

// follow parses the bytes that were read. Paho requests the first bytes of a packet one by one. It returns an error for a packet
// that is longer than any message, before Paho allocates memory for it. It is called for each read, so it must be inlined.
func (f *framing) follow(read []byte) error {
	if f.left > 0 {
		f.left -= len(read)
		return nil
	}
	return f.begin(read)
}

func (f *framing) begin(read []byte) error {
	for _, next := range read {
		if !f.typed {
			f.typed, f.length, f.shift = true, 0, 0
			continue
		}
		f.length |= int(next&0x7f) << (f.shift & 31)
		f.shift += 7
		if next&0x80 == 0 {
			f.typed, f.left = false, f.length
		} else if f.shift >= lengthBits {
			return errors.New("the broker announces a packet with a length of more than four bytes")
		}
		if f.length > f.most {
			return tooLong{f.length, f.most}
		}
	}
	return nil
}

type tooLong struct{ length, most int }

func (t tooLong) Error() string {
	return fmt.Sprintf("the broker announces a packet of %d bytes or more, and the largest may have %d", t.length, t.most)
}

// newConn wraps a connection for messages of at most messageBytes. It calls closed with the counters when the connection ends.
func newConn(over *transport.Conn, gathers bool, messageBytes int, closed func(tcpinfo.Counters)) *conn {
	made := &conn{
		Conn: over.Conn, gathers: gathers, over: over, reader: bufio.NewReaderSize(over.Conn, readBuffer), closed: closed,
		framing: framing{most: messageBytes + envelope}, done: make(chan struct{}),
	}
	made.work, made.room = sync.NewCond(&made.mutex), sync.NewCond(&made.mutex)
	if gathers {
		go made.flush()
	} else {
		close(made.done)
	}
	return made
}

// Read ends a connection whose packet is too long.
func (c *conn) Read(into []byte) (int, error) {
	number, err := c.read(into)
	if err != nil {
		return number, err
	}
	if err := c.framing.follow(into[:number]); err != nil {
		return 0, err
	}
	return number, nil
}

func (c *conn) read(into []byte) (int, error) {
	if c.gathers || c.reader.Buffered() > 0 {
		return c.reader.Read(into)
	}
	number, err := c.reader.Read(into)
	runtime.Gosched() // read the other sockets before making use of this one: an answer must not delay a message
	return number, err
}

// Write queues, if the connection gathers. A later write then returns the error of an earlier one.
func (c *conn) Write(bytes []byte) (int, error) {
	c.wrote.Store(true)
	if !c.gathers {
		return c.Conn.Write(bytes)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for len(c.queued) > mostQueued && c.failed == nil && !c.ended {
		c.room.Wait()
	}
	switch {
	case c.failed != nil:
		return 0, c.failed
	case c.ended:
		return 0, net.ErrClosed
	}
	c.queued = append(c.queued, bytes...)
	c.work.Signal()
	return len(bytes), nil
}

// SetWriteDeadline does nothing, because the timeout of the transport bounds writes without cost.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// flush writes what was queued since the last write.
func (c *conn) flush() {
	defer close(c.done)
	var spare []byte
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for c.failed == nil {
		for len(c.queued) == 0 && !c.ended {
			c.work.Wait()
		}
		if len(c.queued) == 0 {
			return
		}
		c.mutex.Unlock()
		runtime.Gosched() // let callers queue more for the same write: a write costs more than a message
		c.mutex.Lock()
		bytes := c.queued
		c.queued = spare[:0]
		c.mutex.Unlock()
		_, err := c.Conn.Write(bytes)
		c.mutex.Lock()
		c.failed, spare = err, bytes
		c.room.Broadcast()
	}
}

// Close writes what is queued, for a short time, and reads the kernel's counters before they are gone.
func (c *conn) Close() error {
	c.mutex.Lock()
	ended := c.ended
	c.ended = true
	c.work.Signal()
	c.room.Broadcast()
	c.mutex.Unlock()
	if ended {
		return nil
	}
	_ = c.Conn.SetWriteDeadline(time.Now().Add(lastWrite))
	<-c.done
	if counters, err := tcpinfo.Read(c.over.TCP); err == nil {
		c.closed(counters)
	}
	return c.Conn.Close()
}

// hangUp ends a connection after its last packet, and waits for the broker to end it, too. So the segments that close a
// connection are counted. TLS sends no alert, which a broker that closes at once would answer with a reset.
func (c *conn) hangUp() error {
	tcp := c.over.TCP
	err := tcp.CloseWrite()
	if err == nil {
		_ = tcp.SetReadDeadline(time.Now().Add(lastWrite))
		_, err = io.Copy(io.Discard, tcp)
	}
	_ = c.Close()
	return err
}
