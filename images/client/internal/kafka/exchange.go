package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tierbench.io/client/internal/wait"
)

const confirmPause = time.Millisecond

// Subscribe reads all partitions of a topic from their end, without a group. It returns when the client has sent its first fetch
// request.
func (c *connection) Subscribe(ctx context.Context, topic string, arrived func([]byte, time.Time)) error {
	name := topicName(topic)
	c.mutex.Lock()
	c.topic, c.reads = name, true
	c.mutex.Unlock()
	if err := c.ensure(ctx, name); err != nil {
		return err
	}
	from, err := c.ends(ctx, name)
	if err != nil {
		return err
	}
	c.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{name: from})
	go c.poll(arrived)
	select {
	case <-c.fetches:
		return nil
	case <-ctx.Done():
		return context.Canceled
	}
}

// asked records a fetch request.
func (c *connection) asked() {
	select {
	case c.fetches <- struct{}{}:
	default:
	}
}

// poll forwards messages until the client is closed. It skips records without a value, which Prepare sends.
func (c *connection) poll(arrived func([]byte, time.Time)) {
	for {
		fetches := c.client.PollFetches(context.Background())
		if fetches.IsClientClosed() {
			return
		}
		at := time.Now()
		fetches.EachRecord(func(record *kgo.Record) {
			if len(record.Value) > 0 {
				arrived(record.Value, at)
			}
		})
	}
}

// Prepare sends a record without a value and waits for the answer. Then the topic is known, the connection is established, and
// the broker knows the producer.
func (c *connection) Prepare(ctx context.Context, topic string, alone bool) error {
	name := topicName(topic)
	if err := c.ensure(ctx, name); err != nil {
		return err
	}
	if alone {
		if err := c.own(ctx, name); err != nil {
			return err
		}
	}
	answered := make(chan error, 1)
	c.send(&kgo.Record{Topic: name}, func(err error) { answered <- err })
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return context.Canceled
	}
}

// own creates a topic without readers and other writers.
func (c *connection) own(ctx context.Context, name string) error {
	written, err := c.length(ctx, name)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.topic, c.begun = name, written-c.published.Load()
	return err
}

// Confirm reads the length of the topic, because the broker does not answer the messages themselves.
func (c *connection) Confirm(ctx context.Context) error {
	wanted := c.begun + c.published.Load()
	for {
		written, err := c.length(ctx, c.topic)
		if err == nil && written >= wanted {
			return nil
		}
		if wait.For(ctx, confirmPause) != nil {
			return fmt.Errorf("its log has %d of %d records (%w)", written, wanted, errors.Join(err, ctx.Err()))
		}
	}
}

// Publish passes a message to the client, which keeps it until it is acknowledged.
func (c *connection) Publish(topic string, number uint64, message []byte) error {
	c.send(&kgo.Record{Topic: topicName(topic), Value: message}, func(err error) {
		if err == nil && c.events.Acknowledged != nil && c.driver.Delivery != AtMostOnce {
			c.events.Acknowledged(number, time.Now())
		}
	})
	return nil
}

// send reports when the broker has answered, or at once for a delivery without answers.
func (c *connection) send(record *kgo.Record, answered func(error)) {
	c.published.Add(1)
	if c.commits != nil {
		c.commits.add(record, answered)
		return
	}
	c.client.Produce(context.Background(), record, func(_ *kgo.Record, err error) { answered(err) })
}
