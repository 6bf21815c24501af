package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/transport"
	"tierbench.io/client/internal/wait"
)

const (
	anyReplication = -1 // the broker's default
	latest         = -1 // instead of a time
	readOperation  = 1 << 3
	writeOperation = 1 << 4
	removeTimeout  = 10 * time.Second
)

// ensure creates a topic if it does not exist, and waits until each of its partitions has a leader.
func (c *connection) ensure(ctx context.Context, topic string) error {
	if ready, err := c.described(ctx, topic); ready || err != nil {
		return err
	}
	if err := c.create(ctx, topic); err != nil {
		return err
	}
	for {
		ready, err := c.described(ctx, topic)
		if ready || err != nil {
			return err
		}
		if err := wait.For(ctx, retryPause); err != nil {
			return context.Canceled
		}
	}
}

// create creates a topic. A request outlives ctx: a broker would still create the topic after the connection broke, and
// after its deletion.
func (c *connection) create(ctx context.Context, topic string) error {
	answered := make(chan error, 1)
	c.creating.Go(func() { answered <- c.requestTopic(context.WithoutCancel(ctx), topic) })
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return context.Canceled
	}
}

func (c *connection) requestTopic(ctx context.Context, topic string) error {
	wanted := kmsg.NewCreateTopicsRequestTopic()
	wanted.Topic, wanted.NumPartitions, wanted.ReplicationFactor = topic, c.driver.Partitions, anyReplication
	request := kmsg.NewPtrCreateTopicsRequest()
	request.Topics = append(request.Topics, wanted)
	response, err := request.RequestWith(ctx, c.client)
	if err != nil {
		return err
	}
	switch err := kerr.ErrorForCode(response.Topics[0].ErrorCode); {
	case err == nil, errors.Is(err, kerr.TopicAlreadyExists):
		return nil
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		return transport.Failure("NotAuthorized", fmt.Sprintf("the broker does not let this user create the topic %s: allow Create on topics with this prefix", topic), err)
	case errors.Is(err, kerr.PolicyViolation), errors.Is(err, kerr.InvalidPartitions):
		return transport.Failure("TopicRefused", fmt.Sprintf("the broker refuses a topic with %d partitions", c.driver.Partitions), err)
	default:
		return err
	}
}

// described reports whether every partition of a topic has a leader. It returns an error if this user may not use it.
func (c *connection) described(ctx context.Context, topic string) (bool, error) {
	wanted := kmsg.NewMetadataRequestTopic()
	wanted.Topic = kmsg.StringPtr(topic)
	request := kmsg.NewPtrMetadataRequest()
	request.Topics, request.IncludeTopicAuthorizedOperations = append(request.Topics, wanted), true
	response, err := request.RequestWith(ctx, c.client)
	if err != nil {
		return false, err
	}
	found := response.Topics[0]
	if found.ErrorCode != 0 || len(found.Partitions) == 0 {
		return false, nil
	}
	for _, partition := range found.Partitions {
		if partition.ErrorCode != 0 {
			return false, nil
		}
	}
	const needed = readOperation | writeOperation
	if found.AuthorizedOperations&needed != needed {
		message := fmt.Sprintf("the broker does not let this user read and write the topic %s: allow both on topics with this prefix", topic)
		return false, &contract.Failure{Reason: "NotAuthorized", Message: message}
	}
	return true, nil
}

// ends returns the offsets of the next messages of each partition.
func (c *connection) ends(ctx context.Context, topic string) (map[int32]kgo.Offset, error) {
	found, err := c.offsets(ctx, topic)
	ends := map[int32]kgo.Offset{}
	for partition, offset := range found {
		ends[partition] = kgo.NewOffset().At(offset)
	}
	return ends, err
}

// length returns the number of records that a topic has had.
func (c *connection) length(ctx context.Context, topic string) (total int64, err error) {
	found, err := c.offsets(ctx, topic)
	for _, offset := range found {
		total += offset
	}
	return total, err
}

// offsets returns the offsets of the next messages of each partition.
func (c *connection) offsets(ctx context.Context, topic string) (map[int32]int64, error) {
	wanted := kmsg.NewListOffsetsRequestTopic()
	wanted.Topic = topic
	for number := range c.driver.Partitions {
		partition := kmsg.NewListOffsetsRequestTopicPartition()
		partition.Partition, partition.Timestamp = number, latest
		wanted.Partitions = append(wanted.Partitions, partition)
	}
	request := kmsg.NewPtrListOffsetsRequest()
	request.Topics = append(request.Topics, wanted)
	response, err := request.RequestWith(ctx, c.client)
	if err != nil {
		return nil, err
	}
	found := map[int32]int64{}
	for _, partition := range response.Topics[0].Partitions {
		if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
			return nil, err
		}
		found[partition.Partition] = partition.Offset
	}
	return found, nil
}

// remove deletes a topic once it is created. After removeTimeout it gives up, and an empty topic stays.
func (c *connection) remove(topic string) {
	limit, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	created := make(chan struct{})
	go func() {
		c.creating.Wait()
		close(created)
	}()
	select {
	case <-created:
	case <-limit.Done():
		return
	}
	wanted := kmsg.NewDeleteTopicsRequestTopic()
	wanted.Topic = kmsg.StringPtr(topic)
	request := kmsg.NewPtrDeleteTopicsRequest()
	request.TopicNames, request.Topics = []string{topic}, append(request.Topics, wanted)
	_, _ = request.RequestWith(limit, c.client)
}
