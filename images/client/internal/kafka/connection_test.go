package kafka

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"tierbench.io/client/internal/broker"
)

func TestAConnectionStandsWhileNothingWaitsForIt(t *testing.T) {
	client, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	made := newConnection(&Driver{}, broker.Events{})
	made.client = client
	if !made.Stands() {
		t.Error("a producer that has nothing to send is said not to stand")
	}
	client.Produce(context.Background(), &kgo.Record{Topic: "messages"}, nil)
	if made.Stands() {
		t.Error("a producer whose message waits for a connection is said to stand")
	}
	made.topic = "messages"
	if made.Stands() {
		t.Error("a consumer without a connection is said to stand")
	}
}
