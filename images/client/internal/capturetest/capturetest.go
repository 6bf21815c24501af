// Package capturetest captures TCP segments on loopback for tests.
package capturetest

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	ethernet  = 14
	frameSize = 1 << 17
)

// Segment is a TCP segment on the wire.
type Segment struct {
	Client  int // port of the side that connects
	Bytes   int // of the frame
	Payload int
}

// Capture has the segments of one port of a server.
type Capture struct {
	port     int
	mutex    sync.Mutex
	segments []Segment
}

// Start captures until the test ends. Without the right to capture, it skips the test.
func Start(t *testing.T, port int) *Capture {
	t.Helper()
	descriptor, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EPERM) {
		t.Skip("only root can capture packets")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := listen(descriptor, port); err != nil {
		t.Fatal(err)
	}
	socket := os.NewFile(uintptr(descriptor), "capture")
	t.Cleanup(func() { socket.Close() })
	made := &Capture{port: port}
	go made.read(socket)
	return made
}

// listen takes incoming frames of IPv4 only. On loopback, each one arrives once.
func listen(descriptor, port int) error {
	loopback, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	filter := filterOf(uint32(port))
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.SetsockoptSockFprog(descriptor, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program); err != nil {
		return err
	}
	protocol := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_IP))
	return unix.Bind(descriptor, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: loopback.Index})
}

// filterOf accepts TCP segments from or to a port, as `tcpdump -dd tcp port PORT` does.
func filterOf(port uint32) []unix.SockFilter {
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 23},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 5, K: unix.IPPROTO_TCP},
		{Code: unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH, K: ethernet},
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_IND, K: ethernet},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 3, K: port},
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_IND, K: ethernet + 2},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: port},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		{Code: unix.BPF_RET | unix.BPF_K, K: frameSize},
	}
}

func (c *Capture) read(socket *os.File) {
	frame := make([]byte, frameSize)
	for {
		number, err := socket.Read(frame)
		if err != nil {
			return
		}
		c.add(frame[ethernet:number])
	}
}

func (c *Capture) add(packet []byte) {
	segment := packet[int(packet[0]&0xf)*4:]
	from, to := int(binary.BigEndian.Uint16(segment)), int(binary.BigEndian.Uint16(segment[2:]))
	client := from
	if from == c.port {
		client = to
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.segments = append(c.segments, Segment{client, ethernet + len(packet), len(segment) - int(segment[12]>>4)*4})
}

// Clients returns the ports of all clients, in the order of their first segments.
func (c *Capture) Clients() (clients []int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, segment := range c.segments {
		if !slices.Contains(clients, segment.Client) {
			clients = append(clients, segment.Client)
		}
	}
	return clients
}

// Of returns the segments of one client, both ways.
func (c *Capture) Of(client int) (segments []Segment) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, segment := range c.segments {
		if segment.Client == client {
			segments = append(segments, segment)
		}
	}
	return segments
}
