package mqtt

import (
	"net"
	"testing"
	"time"

	"tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/contract"
)

// TestMessageOfABrokenConnectionIsSentAgain: the broker ends the first connection at once.
func TestMessageOfABrokenConnectionIsSentAgain(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	answering := &silent{received: make(chan []uint16, 1)}
	go func() {
		for number := 0; ; number++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if number == 0 {
				conn.Close()
				continue
			}
			answering.received <- answering.converse(conn, true)
		}
	}()
	var numbers []uint64
	driver := &Driver{Address: listener.Addr().String(), QoS: 1, Timeout: time.Minute}
	publisher := driver.EachMessage("test", broker.Events{Acknowledged: func(number uint64, _ time.Time) { numbers = append(numbers, number) }})
	if err := publisher.Publish("topic", 7, []byte("message")); err != nil {
		t.Fatal(err)
	}
	statistics := publisher.Statistics()
	if len(<-answering.received) != 1 || len(numbers) != 1 || numbers[0] != 7 || !publisher.Connected() {
		t.Errorf("acknowledged: %v", numbers)
	}
	if statistics.Connections != 1 || statistics.Reconnects != 1 || statistics.Resent != 0 || statistics.Errors[contract.Disconnected] != 1 {
		t.Errorf("%+v", statistics)
	}
	publisher.Close()
	if err := publisher.Publish("topic", 8, nil); err == nil {
		t.Error("a closed publisher publishes")
	}
}

func TestRefusedAccountHasAReason(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	refusal := map[string][]byte{"": {0x20, 2, 0, 5}, Version5: {0x20, 3, 0, notAuthorized, 0}}
	for version, answer := range refusal {
		go func() {
			if conn, err := listener.Accept(); err == nil {
				_, _ = conn.Read(make([]byte, 1024))
				_, _ = conn.Write(answer)
				conn.Close()
			}
		}()
		driver := &Driver{Address: listener.Addr().String(), Version: version, QoS: 1, Timeout: time.Minute}
		err := driver.EachMessage("test", broker.Events{}).Publish("topic", 0, nil)
		if failure, is := err.(*contract.Failure); !is || failure.Reason != "CredentialsRefused" {
			t.Errorf("%s: %v", version, err)
		}
	}
}

func TestBrokerOfAnotherVersionIsRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, answer := range [][]byte{{0x20, 2, 0, 1}, {0x20, 3, 0, unsupportedVersion, 0}} {
		go func() {
			if conn, err := listener.Accept(); err == nil {
				_, _ = conn.Read(make([]byte, 1024))
				_, _ = conn.Write(answer)
				conn.Close()
			}
		}()
		driver := &Driver{Address: listener.Addr().String(), Version: Version5, Timeout: time.Minute}
		_, err := driver.Connect(t.Context(), "test", broker.Events{})
		if failure, is := err.(*contract.Failure); !is || failure.Reason != "MqttVersionRefused" {
			t.Errorf("%x: %v", answer, err)
		}
	}
}
