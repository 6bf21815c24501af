package kafka

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/egress"
)

func TestProducerIsConnectedUnlessMessagesWait(t *testing.T) {
	client, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	made := newConnection(&Driver{}, broker.Events{})
	made.client = client
	if !made.Connected() {
		t.Error("a producer without messages is not connected")
	}
	client.Produce(context.Background(), &kgo.Record{Topic: "messages"}, nil)
	if made.Connected() {
		t.Error("a producer whose message waits for a connection is connected")
	}
	made.topic = "messages"
	if made.Connected() {
		t.Error("a consumer without a connection is connected")
	}
}

// A broker may die while the client waits for an answer to a commit, on another connection than that of the messages.
func TestRecreatedProducerCountsOnlyBrokenConnections(t *testing.T) {
	for name, broken := range map[string]int64{"open": 0, "broken": 1} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			made := newConnection(&Driver{Address: listener.Addr().String(), ServerName: "broker", Timeout: time.Minute}, broker.Events{})
			old, other := producing(t, made, listener)
			defer other.Close()
			if broken > 0 {
				other.Close()
				if _, err := old.Read(make([]byte, 1)); err == nil {
					t.Fatal("the other end is closed, but has sent data")
				}
			}
			made.producerEnded()
			_, other = producing(t, made, listener)
			defer other.Close()
			counts := made.Statistics()
			if counts.Reconnects != broken || counts.Errors[contract.Disconnected] != broken || made.standing != 1 || len(made.open) != 1 {
				t.Errorf("%+v, %d stand, %d are open", counts, made.standing, len(made.open))
			}
		})
	}
}

// An external Kafka could redirect its clients, with their account, to any host.
func TestKafkaRedirectsClientsOnlyToAllowedHosts(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	allowed, err := egress.ParseHosts([]string{"192.0.2.0/24"})
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	made := newConnection(&Driver{Address: listener.Addr().String(), Timeout: time.Minute, Allowed: allowed}, broker.Events{})
	own, err := made.dial(t.Context(), "tcp", made.driver.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	var failure *contract.Failure
	if other, err := made.dial(t.Context(), "tcp", net.JoinHostPort("localhost", port)); !errors.As(err, &failure) || failure.Reason != "AddressRefused" {
		t.Errorf("%v, %v", other, err)
	}
}

// producing returns a connection that has sent a message, and its other end.
func producing(t *testing.T, of *connection, listener net.Listener) (*conn, net.Conn) {
	t.Helper()
	made, err := of.dial(t.Context(), "tcp", "broker:1")
	if err != nil {
		t.Fatal(err)
	}
	other, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	request := kmsg.NewPtrProduceRequest()
	request.SetVersion(flexibleProduce)
	if _, err := made.Write(kmsg.NewRequestFormatter().AppendRequest(nil, request, 1)); err != nil {
		t.Fatal(err)
	}
	return made.(*conn), other
}
