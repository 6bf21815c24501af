package kafka

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tierbench.io/client/internal/transport"
)

const (
	produceKey      = 0
	fetchKey        = 1
	flexibleProduce = 9 // the version from which on requests have tags
	sizeBytes       = 4 // before a request
	keyBytes        = 2
	batchRecords    = 57 // where a batch says how many records it holds
)

// conn reports to its owner what it sends, and its counters when it ends.
type conn struct {
	*transport.Conn
	owner    *connection
	once     sync.Once
	active   atomic.Bool // it has carried messages
	produces atomic.Bool
}

func (c *conn) Write(request []byte) (int, error) {
	number, err := c.Conn.Write(request)
	if err != nil || len(request) < sizeBytes+keyBytes {
		return number, err
	}
	switch binary.BigEndian.Uint16(request[sizeBytes:]) {
	case produceKey:
		c.owner.written.Add(records(request))
		c.produces.Store(true)
	case fetchKey:
		c.owner.asked()
	default:
		return number, nil
	}
	if !c.active.Swap(true) {
		c.owner.markActive()
	}
	return number, nil
}

func (c *conn) Close() error {
	c.once.Do(func() { c.owner.ended(c) })
	return c.Conn.Close()
}

// records returns the number of records in a produce request.
func records(request []byte) int64 {
	produce := kmsg.NewPtrProduceRequest()
	produce.SetVersion(int16(binary.BigEndian.Uint16(request[sizeBytes+2:])))
	body := request[sizeBytes+8:] // after key, version and correlation
	body = body[2+binary.BigEndian.Uint16(body):]
	if produce.GetVersion() >= flexibleProduce {
		body = body[1:] // no tags
	}
	if produce.UnsafeReadFrom(body) != nil {
		return 0
	}
	var total int64
	for _, topic := range produce.Topics {
		for _, partition := range topic.Partitions {
			if len(partition.Records) >= batchRecords+4 {
				total += int64(binary.BigEndian.Uint32(partition.Records[batchRecords:]))
			}
		}
	}
	return total
}
