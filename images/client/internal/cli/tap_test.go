package cli

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
)

// tap is a proxy for a broker that records what it forwards.
type tap struct {
	address string
	shut    func()            // refuses further connections
	holds   func(sent []byte) // called before bytes of a client are forwarded
	mutex   sync.Mutex
	passed  []*exchanged
}

// exchanged is what a client and the broker have sent on a connection.
type exchanged struct{ sent, received bytes.Buffer }

func tapped(t *testing.T, port int) *tap {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	made := &tap{address: listener.Addr().String(), shut: func() { listener.Close() }, holds: func([]byte) {}}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil {
				client.Close()
				continue
			}
			kept := &exchanged{}
			made.mutex.Lock()
			made.passed = append(made.passed, kept)
			holds := made.holds
			made.mutex.Unlock()
			go made.pass(server, client, &kept.sent, holds)
			go made.pass(client, server, &kept.received, func([]byte) {})
		}
	}()
	return made
}

// pass forwards all bytes, each after it is recorded.
func (d *tap) pass(to, from net.Conn, kept *bytes.Buffer, holds func([]byte)) {
	buffer := make([]byte, 64<<10)
	for {
		number, err := from.Read(buffer)
		d.mutex.Lock()
		kept.Write(buffer[:number])
		d.mutex.Unlock()
		holds(buffer[:number])
		if _, failed := to.Write(buffer[:number]); err != nil || failed != nil {
			_ = to.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, from)
			return
		}
	}
}

// of returns what has passed on the connections of clients whose names have an ending.
func (d *tap) of(ending string) (passed []exchanged) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for _, one := range d.passed {
		if _, name := parseConnect(one.sent.Bytes()); bytes.HasSuffix(name, []byte(ending)) {
			var copied exchanged
			copied.sent.Write(one.sent.Bytes())
			copied.received.Write(one.received.Bytes())
			passed = append(passed, copied)
		}
	}
	return passed
}

// parseConnect returns the protocol level of the CONNECT that a connection begins with, and the client's name.
func parseConnect(sent []byte) (level byte, name []byte) {
	if len(sent) < 14 || !bytes.Equal(sent[2:8], []byte("\x00\x04MQTT")) {
		return 0, nil
	}
	level, rest := sent[8], sent[12:] // after flags and keep-alive
	if level == 5 {
		rest = rest[1+rest[0]:] // properties
	}
	return level, rest[2 : 2+int(rest[0])<<8+int(rest[1])]
}
