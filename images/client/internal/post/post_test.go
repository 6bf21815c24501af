package post

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/tcpinfo"
)

const (
	cut     = "\x00cut"
	taken   = "HTTP/1.1 204 No Content\r\n\r\n"
	patient = 5 * time.Minute // longer than anything takes on a busy machine
	soon    = 2 * time.Second
)

// server answers each request by the number of its connection and of the request in it, both from 0. An empty answer is
// not sent, and `cut` at the end of an answer closes the connection.
type server struct {
	net.Listener
	answer func(connection, request int) string
	mutex  sync.Mutex
	bodies []string
	raw    []*bytes.Buffer // what arrived on each connection
}

func serve(t *testing.T, answer func(connection, request int) string) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	made := &server{Listener: listener, answer: answer}
	go func() {
		for number := 0; ; number++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go made.converse(conn, number)
		}
	}()
	return made
}

func (s *server) converse(conn net.Conn, number int) {
	defer conn.Close()
	raw := &bytes.Buffer{}
	s.mutex.Lock()
	s.raw = append(s.raw, raw)
	s.mutex.Unlock()
	reader := bufio.NewReader(io.TeeReader(conn, raw))
	for request := 0; ; request++ {
		asked, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		body, err := io.ReadAll(asked.Body)
		if err != nil {
			return
		}
		s.mutex.Lock()
		s.bodies = append(s.bodies, string(body))
		s.mutex.Unlock()
		text, ends := strings.CutSuffix(s.answer(number, request), cut)
		_, _ = io.WriteString(conn, text)
		if ends {
			return
		}
	}
}

func (s *server) received() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.bodies)
}

// bytes returns what arrived on each connection that has ended.
func (s *server) bytes() (all []string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, one := range s.raw {
		all = append(all, one.String())
	}
	return all
}

// events are what a connection reported, by the number of the message.
type events struct {
	mutex        sync.Mutex
	acknowledged []uint64
	refused      []string
}

func (e *events) of() broker.Events {
	return broker.Events{
		Acknowledged: func(number uint64, _ time.Time) {
			e.mutex.Lock()
			defer e.mutex.Unlock()
			e.acknowledged = append(e.acknowledged, number)
		},
		Refused: func(number uint64, why broker.Refusal) {
			e.mutex.Lock()
			defer e.mutex.Unlock()
			e.refused = append(e.refused, fmt.Sprintf("%d %s %s", number, why.Cause, why.Answer))
		},
	}
}

func connect(t *testing.T, to net.Listener, timeout time.Duration) (*connection, *events) {
	t.Helper()
	seen := &events{}
	driver := &Driver{Address: to.Addr().String(), Host: "broker", Target: "/readings", Timeout: timeout}
	made, err := driver.Connect(context.Background(), "test", seen.of())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made.(*connection), seen
}

func publish(t *testing.T, by *connection, messages ...string) {
	t.Helper()
	for number, message := range messages {
		if err := by.Publish("", uint64(number), []byte(message)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEvery2xxStatusAcknowledgesAMessage(t *testing.T) {
	answers := []string{
		taken,
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"HTTP/1.1 102 Processing\r\n\r\n" + taken,
	}
	to := serve(t, func(connection, request int) string {
		if connection > 0 {
			return ""
		}
		return answers[request]
	})
	by, seen := connect(t, to, patient)
	publish(t, by, "one", "two", "three", "four")
	if !slices.Equal(seen.acknowledged, []uint64{0, 1, 2, 3}) || !slices.Equal(to.received(), []string{"one", "two", "three", "four"}) {
		t.Errorf("%v of %q", seen.acknowledged, to.received())
	}
	if now := by.Statistics(); now.Reconnects+now.Resent != 0 || len(now.Errors) != 0 || now.Connect == 0 || now.Wire.SentPackets < 5 {
		t.Errorf("%+v", now)
	}
}

func TestEveryOtherStatusRefusesAMessage(t *testing.T) {
	statuses := []int{301, 404, 429, 500, 503, 999}
	to := serve(t, func(_, request int) string {
		return fmt.Sprintf("HTTP/1.1 %d \x1b\r\nContent-Length: 0\r\n\r\n", statuses[request])
	})
	by, seen := connect(t, to, patient)
	publish(t, by, "a", "b", "c", "d", "e", "f")
	wanted := []string{
		"0 Status3xx 301 Moved Permanently", "1 Status4xx 404 Not Found", "2 Status4xx 429 Too Many Requests",
		"3 Status5xx 500 Internal Server Error", "4 Status5xx 503 Service Unavailable", "5 Refused 999 ",
	}
	if !slices.Equal(seen.refused, wanted) || len(seen.acknowledged) > 0 || by.Statistics().Resent != 0 {
		t.Errorf("%q, %v", seen.refused, seen.acknowledged)
	}
}

// TestRequestWithoutAResponseIsSentAgain: on a new connection, if the server closes the old one or answers nonsense.
func TestRequestWithoutAResponseIsSentAgain(t *testing.T) {
	endless := strings.Repeat("x", 2*largestResponse)
	for name, answer := range map[string]string{
		"nothing":      cut,
		"half a head":  "HTTP/1.1 20" + cut,
		"half a body":  "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhe" + cut,
		"nonsense":     "220 ESMTP\r\n",
		"endless head": "HTTP/1.1 200 OK\r\nX: " + endless,
		"endless body": "HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" + endless,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := serve(t, func(connection, request int) string {
				if connection > 0 || request == 0 {
					return taken
				}
				return answer
			})
			by, seen := connect(t, to, patient)
			publish(t, by, "one", "two", "three")
			if !slices.Equal(seen.acknowledged, []uint64{0, 1, 2}) || !slices.Equal(to.received(), []string{"one", "two", "two", "three"}) {
				t.Errorf("%v of %q", seen.acknowledged, to.received())
			}
			if now := by.Statistics(); now.Reconnects != 1 || now.Resent != 1 || now.Errors[contract.Disconnected] != 1 {
				t.Errorf("%+v", now)
			}
		})
	}
}

// TestOrderlyCloseByTheServerIsNotAnError: its last response may announce it, or it may close while nothing is sent.
func TestOrderlyCloseByTheServerIsNotAnError(t *testing.T) {
	last := "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"
	for name, answer := range map[string]string{"says so": last, "says so and ends": last + cut, "ends": taken + cut} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := serve(t, func(int, int) string { return answer })
			by, seen := connect(t, to, patient)
			publish(t, by, "one")
			for over := by.live; over != nil && tcpinfo.Established(over.TCP); time.Sleep(time.Millisecond) {
			}
			publish(t, by, "two")
			if now := by.Statistics(); len(seen.acknowledged) != 2 || now.Reconnects != 1 || now.Resent != 0 || len(now.Errors) != 0 {
				t.Errorf("%v, %+v", seen.acknowledged, now)
			}
		})
	}
}

func TestStalledServerCostsOneMessage(t *testing.T) {
	to := serve(t, func(connection, _ int) string {
		if connection == 0 {
			return ""
		}
		return taken
	})
	by, seen := connect(t, to, soon)
	publish(t, by, "one")
	if len(seen.refused) != 1 || !strings.HasPrefix(seen.refused[0], "0 TimedOut nothing: ") || !by.Connected() {
		t.Fatalf("%q, connected %v", seen.refused, by.Connected())
	}
	by.driver.Timeout = patient
	publish(t, by, "two")
	if now := by.Statistics(); len(seen.acknowledged) != 1 || now.Reconnects != 1 || now.Resent != 0 || len(now.Errors) != 0 {
		t.Errorf("%v, %+v", seen.acknowledged, now)
	}
}

func TestPublisherWithoutAServerIsNotConnected(t *testing.T) {
	to := serve(t, func(int, int) string { return cut })
	by, seen := connect(t, to, patient)
	to.Close()
	ended := make(chan error)
	go func() { ended <- by.Publish("", 0, []byte("one")) }()
	for by.Connected() {
		time.Sleep(time.Millisecond)
	}
	by.Close()
	if err := <-ended; err == nil {
		t.Error("the message counts as sent")
	}
	if len(seen.acknowledged)+len(seen.refused) != 0 {
		t.Errorf("%v, %q", seen.acknowledged, seen.refused)
	}
}

func TestCloseEndsAWaitingRequest(t *testing.T) {
	to := serve(t, func(int, int) string { return "" })
	by, _ := connect(t, to, patient)
	ended := make(chan error)
	go func() { ended <- by.Publish("", 0, []byte("one")) }()
	for len(to.received()) == 0 {
		time.Sleep(time.Millisecond)
	}
	by.Close()
	if err := <-ended; err == nil || err.Error() != "no response came in time" {
		t.Errorf("%v", err)
	}
}

// TestAnswerBeforeTheEndOfTheMessageCounts: a server refuses what is too large before it has read it.
func TestAnswerBeforeTheEndOfTheMessageCounts(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.ReadFull(conn, make([]byte, 1000))
		_, _ = io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
	}()
	by, seen := connect(t, listener, patient)
	publish(t, by, strings.Repeat("x", 32<<20))
	if !slices.Equal(seen.refused, []string{"0 Status4xx 413 Request Entity Too Large"}) {
		t.Errorf("%q", seen.refused)
	}
}

func TestRequestHasTheDocumentedHeaders(t *testing.T) {
	to := serve(t, func(int, int) string { return taken })
	driver := &Driver{Address: to.Addr().String(), Host: "broker", Target: "/a?b=c", Timeout: patient, Username: "user", Password: "right"}
	for _, user := range []string{"", "user"} {
		driver.Username = user
		seen := &events{}
		by, err := driver.Connect(t.Context(), "test", seen.of())
		if err != nil {
			t.Fatal(err)
		}
		publish(t, by.(*connection), "12345")
		by.Close()
	}
	usual := "POST /a?b=c HTTP/1.1\r\nHost: broker\r\nContent-Type: application/octet-stream\r\nContent-Length: 5\r\n\r\n12345"
	account := strings.Replace(usual, "\r\nContent-T", "\r\nAuthorization: Basic dXNlcjpyaWdodA==\r\nContent-T", 1)
	if found := to.bytes(); !slices.Equal(found, []string{usual, account}) {
		t.Errorf("%q", found)
	}
}
