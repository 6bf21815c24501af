package post

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/tcpinfo"
	"tierbench.io/client/internal/wait"
)

const retryPause = 200 * time.Millisecond

// connection is a publisher, with at most one TCP connection.
type connection struct {
	driver  *Driver
	events  broker.Events
	head    string
	request []byte // of the message that is sent
	ending  context.Context
	end     context.CancelFunc

	publishing atomic.Bool
	silent     atomic.Bool // the last request had no response

	mutex      sync.Mutex
	live       *conn // nil if none is open
	statistics broker.Statistics
}

// Subscribe fails, because an HTTP server forwards no messages.
func (c *connection) Subscribe(context.Context, string, func([]byte, time.Time)) error {
	return errors.New("HTTP has no subscribers")
}

// Prepare does nothing, because a connection is ready for every message.
func (c *connection) Prepare(context.Context, string, bool) error { return nil }

// Confirm does nothing, because every message that the server has received was answered.
func (c *connection) Confirm(context.Context) error { return nil }

// Publish returns when the server has answered, or the timeout has passed. So one message is in flight at a time. A
// request whose connection breaks is sent again by the next one, and the server may have received both.
func (c *connection) Publish(_ string, number uint64, message []byte) error {
	c.publishing.Store(true)
	defer c.publishing.Store(false)
	c.request = strconv.AppendInt(append(c.request[:0], c.head...), int64(len(message)), 10)
	c.request = append(append(c.request, "\r\n\r\n"...), message...)
	var last error
	sent, deadline := false, time.Now().Add(c.driver.Timeout)
	for {
		over, err := c.open(deadline)
		if err == nil {
			c.count(func(now *broker.Statistics) { now.Resent += one(sent) })
			sent = true
			var status int
			if status, err = c.exchange(over, deadline); err == nil {
				c.settle(number, status)
				return nil
			}
		}
		c.silent.Store(true)
		switch {
		case c.ending.Err() != nil && last == nil:
			return errors.New("no response came in time")
		case c.ending.Err() != nil:
			return last
		case !time.Now().Before(deadline):
			c.events.Refused(number, broker.Refusal{Cause: contract.TimedOut, Answer: "nothing: " + err.Error()})
			return nil
		}
		last = err
		limit, cancel := context.WithDeadline(c.ending, deadline)
		_ = wait.For(limit, retryPause)
		cancel()
	}
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// settle reports what a server has answered.
func (c *connection) settle(number uint64, status int) {
	at := time.Now()
	c.silent.Store(false)
	if status/100 == 2 {
		c.events.Acknowledged(number, at)
		return
	}
	cause := contract.Refused
	if status >= 300 && status < 600 {
		cause = fmt.Sprintf("Status%dxx", status/100)
	}
	c.events.Refused(number, broker.Refusal{Cause: cause, Answer: fmt.Sprintf("%d %s", status, http.StatusText(status))})
}

// open returns the connection for the next request: a new one if the server has closed the last one.
func (c *connection) open(deadline time.Time) (*conn, error) {
	c.mutex.Lock()
	over := c.live
	c.mutex.Unlock()
	if over != nil {
		if tcpinfo.Established(over.TCP) {
			return over, nil
		}
		c.drop(over)
	}
	limit, cancel := context.WithDeadline(c.ending, deadline)
	defer cancel()
	over, err := c.driver.dial(limit)
	if err != nil {
		return nil, err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.ending.Err() != nil {
		over.TCP.Close()
		return nil, net.ErrClosed
	}
	c.live = over
	c.statistics.Reconnects++
	return over, nil
}

// exchange sends the request and reads its response. A server may answer before it has read everything, so a response counts even
// if the rest of the request could not be written.
func (c *connection) exchange(over *conn, deadline time.Time) (int, error) {
	_ = over.SetDeadline(deadline)
	_, unwritten := over.Write(c.request)
	status, last, err := over.response()
	if err != nil || unwritten != nil || last {
		c.drop(over)
	}
	if err != nil && c.ending.Err() == nil && time.Now().Before(deadline) {
		c.count(func(now *broker.Statistics) { now.Errors[contract.Disconnected]++ })
	}
	return status, err
}

func (c *connection) count(change func(*broker.Statistics)) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	change(&c.statistics)
}

// drop closes a connection, after it has read the kernel's counters.
func (c *connection) drop(over *conn) {
	c.mutex.Lock()
	if c.live != over {
		c.mutex.Unlock()
		return
	}
	c.live = nil
	c.statistics.Wire.Add(counters(over))
	c.mutex.Unlock()
	_ = over.Close()
}

func counters(over *conn) tcpinfo.Counters {
	found, err := tcpinfo.Read(over.TCP)
	if err != nil {
		return tcpinfo.Counters{}
	}
	return found
}

// Connected reports whether the server answers, as far as is known. A publisher without a message to send needs no connection.
func (c *connection) Connected() bool { return !c.publishing.Load() || !c.silent.Load() }

// Statistics returns the statistics so far, including those of the open connection.
func (c *connection) Statistics() broker.Statistics {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := c.statistics
	now.Errors = maps.Clone(now.Errors)
	if c.live != nil {
		now.Wire.Add(counters(c.live))
	}
	return now
}

// Close ends the connection, and a request that waits for its response.
func (c *connection) Close() {
	c.end()
	c.mutex.Lock()
	over := c.live
	c.mutex.Unlock()
	if over != nil {
		c.drop(over)
	}
}
