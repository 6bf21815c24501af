package mqtt

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"tierbench.io/client/internal/broker"
)

const messages = 200

// silent is a broker that accepts connections. `answers` says by the number of a connection whether it acknowledges
// messages.
type silent struct {
	listener net.Listener
	answers  func(connection int) bool
	received chan []uint16 // identifiers of a connection's messages, in their order
}

func startSilent(t *testing.T, answers func(connection int) bool) *silent {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	made := &silent{listener, answers, make(chan []uint16, 16)}
	go made.serve()
	return made
}

func (s *silent) serve() {
	for number := 0; ; number++ {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.received <- s.converse(conn, s.answers(number))
	}
}

// converse ends an unanswered connection when all messages have arrived.
func (s *silent) converse(conn net.Conn, answers bool) []uint16 {
	defer conn.Close()
	var received []uint16
	for {
		read, err := packets.ReadPacket(conn)
		if err != nil {
			return received
		}
		switch packet := read.(type) {
		case *packets.ConnectPacket:
			_ = packets.NewControlPacket(packets.Connack).Write(conn)
		case *packets.PublishPacket:
			received = append(received, packet.MessageID)
			if answers {
				answer := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
				answer.MessageID = packet.MessageID
				_ = answer.Write(conn)
			} else if len(received) == messages {
				return received
			}
		}
	}
}

func publishAll(t *testing.T, to *silent, acknowledged func(uint64)) broker.Connection {
	t.Helper()
	driver := &Driver{Address: to.listener.Addr().String(), QoS: 1, Timeout: 10 * time.Second}
	connection, err := driver.Connect(context.Background(), "test", broker.Events{Acknowledged: func(number uint64, _ time.Time) { acknowledged(number) }})
	if err != nil {
		t.Fatal(err)
	}
	for number := range uint64(messages) {
		if err := connection.Publish("topic", number, []byte("message")); err != nil {
			t.Fatal(err)
		}
	}
	return connection
}

func TestResentMessagesAreNotAcknowledged(t *testing.T) {
	to := startSilent(t, func(int) bool { return false })
	numbers := make(chan uint64, 10*messages)
	connection := publishAll(t, to, func(number uint64) { numbers <- number })
	<-to.received
	<-to.received // on a second connection
	connection.Close()
	if len(numbers) != 0 {
		t.Errorf("%d messages count as acknowledged", len(numbers))
	}
	if resent := connection.Statistics().Resent; resent < messages {
		t.Errorf("%d messages sent again", resent)
	}
}

func TestResentMessagesKeepTheirOrder(t *testing.T) {
	to := startSilent(t, func(connection int) bool { return connection > 0 })
	numbers := make(chan uint64, messages)
	connection := publishAll(t, to, func(number uint64) { numbers <- number })
	<-to.received
	for wanted := range uint64(messages) {
		if number := <-numbers; number != wanted {
			t.Fatalf("message %d is acknowledged where %d should be", number, wanted)
		}
	}
	connection.Close()
	again := <-to.received
	for index := 1; index < len(again); index++ {
		if again[index] != again[index-1]+1 {
			t.Fatalf("%d is sent again after %d", again[index], again[index-1])
		}
	}
}
