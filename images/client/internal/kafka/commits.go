package kafka

import (
	"context"
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"tierbench.io/client/internal/wait"
)

// commits sends messages in transactions. Each transaction contains what arrived while the previous one was committed.
type commits struct {
	of     *connection
	client *kgo.Client // of the connection, or the producer that replaces it
	cancel context.CancelFunc
	ended  chan struct{}

	mutex   sync.Mutex
	waiting []entry
	wake    chan struct{}
}

type entry struct {
	record   *kgo.Record
	answered func(error)
}

func startCommits(of *connection) *commits {
	ctx, cancel := context.WithCancel(context.Background())
	made := &commits{of: of, client: of.client, cancel: cancel, ended: make(chan struct{}), wake: make(chan struct{}, 1)}
	go made.run(ctx)
	return made
}

func (c *commits) stop() {
	c.cancel()
	<-c.ended
}

func (c *commits) add(record *kgo.Record, answered func(error)) {
	c.mutex.Lock()
	c.waiting = append(c.waiting, entry{record, answered})
	c.mutex.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *commits) take() []entry {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	taken := c.waiting
	c.waiting = nil
	return taken
}

func (c *commits) run(ctx context.Context) {
	defer close(c.ended)
	for {
		select {
		case <-c.wake:
		case <-ctx.Done():
			return
		}
		for taken := c.take(); len(taken) > 0; taken = c.take() {
			if c.persist(ctx, taken) != nil {
				return
			}
			for _, one := range taken {
				one.answered(nil)
			}
		}
	}
}

// persist commits the entries in one transaction, and retries until it succeeds.
func (c *commits) persist(ctx context.Context, entries []entry) error {
	for {
		if err := c.commit(ctx, entries); err == nil {
			return nil
		}
		if err := wait.For(ctx, retryPause); err != nil {
			return err
		}
	}
}

func (c *commits) commit(ctx context.Context, entries []entry) error {
	if err := c.client.BeginTransaction(); err != nil {
		return errors.Join(err, c.renew())
	}
	results := make(chan error, len(entries))
	for _, one := range entries {
		again := &kgo.Record{Topic: one.record.Topic, Value: one.record.Value}
		c.client.Produce(ctx, again, func(_ *kgo.Record, err error) { results <- err })
	}
	err := c.client.Flush(ctx)
	for range entries {
		if err == nil {
			err = <-results
		}
	}
	if err == nil {
		err = c.client.EndTransaction(ctx, kgo.TryCommit)
	}
	if err != nil && ctx.Err() == nil {
		_ = c.client.AbortBufferedRecords(ctx)
		if c.client.EndTransaction(ctx, kgo.TryAbort) != nil && ctx.Err() == nil {
			err = errors.Join(err, c.renew())
		}
	}
	return err
}

// renew creates another producer of the same name, because a producer that the broker has fenced never sends again. No other
// producer has that name, so the end of its own transaction fenced it, and the broker ended before it answered.
func (c *commits) renew() error {
	made, err := kgo.NewClient(c.of.options...)
	if err != nil {
		return err
	}
	c.of.producerEnded()
	c.close()
	c.client = made
	return nil
}

// close ends the producer, except for the connection's own client, which may read.
func (c *commits) close() {
	if c.client != c.of.client {
		c.client.Close()
	}
}
