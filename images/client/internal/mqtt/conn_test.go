package mqtt

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"runtime"
	"testing"
	"testing/iotest"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"tierbench.io/client/internal/transport"
)

// reading is a conn that reads from a stream.
func reading(stream io.Reader, messageBytes int) *conn {
	return &conn{gathers: true, reader: bufio.NewReader(stream), framing: framing{most: messageBytes}}
}

func published(t *testing.T, size int) []byte {
	t.Helper()
	packet := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	packet.TopicName, packet.Payload = "topic", make([]byte, size)
	var written bytes.Buffer
	if err := packet.Write(&written); err != nil {
		t.Fatal(err)
	}
	return written.Bytes()
}

func TestPacketsAreReadWholeAndInPieces(t *testing.T) {
	stream := bytes.Join([][]byte{published(t, 0), {0xd0, 0}, published(t, 1), published(t, 200), published(t, 70_000), {0xd0, 0}}, nil)
	for name, from := range map[string]io.Reader{
		"whole":        bytes.NewReader(stream),
		"byte by byte": iotest.OneByteReader(bytes.NewReader(stream)),
		"in halves":    iotest.HalfReader(bytes.NewReader(stream)),
	} {
		reader := reading(from, 70_100)
		for number := range 6 {
			if _, err := packets.ReadPacket(reader); err != nil {
				t.Fatalf("%s: packet %d: %v", name, number, err)
			}
		}
		if _, err := packets.ReadPacket(reader); err != io.EOF {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTooLongPacketIsRefusedBeforeItIsRead(t *testing.T) {
	announced := []byte{0x30, 0xff, 0xff, 0xff, 0x7f} // 256 MiB
	one := []byte{0xd0, 1, 0}                         // one byte remains
	reader := reading(bytes.NewReader(append(one, announced...)), 1000)
	if _, err := packets.ReadPacket(reader); err != nil {
		t.Fatal(err)
	}
	_, err := packets.ReadPacket(reader)
	if err == nil || err == io.EOF || err == io.ErrUnexpectedEOF {
		t.Errorf("the packet is accepted: %v", err)
	}
}

func TestEndlessLengthIsRefused(t *testing.T) {
	reader := reading(bytes.NewReader(append([]byte{0x30}, bytes.Repeat([]byte{0x80}, 1000)...)), 1000)
	if _, err := io.ReadAll(reader); err == nil {
		t.Error("the packet is accepted")
	}
}

// sink is a network connection that counts its writes.
type sink struct {
	net.Conn
	writes, bytes int
}

func (s *sink) Write(written []byte) (int, error) {
	s.writes++
	s.bytes += len(written)
	return len(written), nil
}

func (s *sink) SetWriteDeadline(time.Time) error { return nil }

func (s *sink) Close() error { return nil }

func TestMessagesInQuickSuccessionShareAWrite(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const messages, size = 10_000, 100
	to := &sink{}
	over := newConn(&transport.Conn{Conn: to, TCP: &net.TCPConn{}}, true, size, nil)
	credits, handed := make(chan struct{}), make(chan []byte)
	go func() { // permits a message for each that arrives
		defer close(credits)
		for range messages {
			credits <- struct{}{}
		}
	}()
	go func() { // hands each message to Paho
		defer close(handed)
		for range credits {
			handed <- make([]byte, size)
		}
	}()
	for message := range handed {
		if _, err := over.Write(message); err != nil {
			t.Fatal(err)
		}
	}
	_ = over.Close()
	if to.bytes != messages*size {
		t.Errorf("%d bytes are written of %d", to.bytes, messages*size)
	}
	if to.writes > messages/10 {
		t.Errorf("%d messages take %d writes", messages, to.writes)
	}
}
