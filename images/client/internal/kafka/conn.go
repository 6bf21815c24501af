package kafka

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tierbench.io/client/internal/link"
	"tierbench.io/client/internal/lowwater"
)

const (
	produceKey      = 0
	fetchKey        = 1
	flexibleProduce = 9 // the version from which on requests bear tags
	sizeBytes       = 4 // before a request
	keyBytes        = 2
	batchRecords    = 57 // where a batch says how many records it holds
	largeAnswer     = 128 << 10
	mostMark        = 512 << 10
)

// conn tells its owner what it sends, and its counters when it ends.
type conn struct {
	*link.Link
	raw    syscall.RawConn // nil if it is told of whatever comes
	mark   int64
	owner  *connection
	once   sync.Once
	stands atomic.Bool // messages have gone by it
}

// Read takes what is asked for. Of a large answer, which is of use only when it is whole, the kernel wakes the reader for many
// bytes at a time: to wake it for each segment is the broker's work where both are on one machine.
func (c *conn) Read(into []byte) (int, error) {
	if mark := c.markFor(len(into)); mark != c.mark {
		c.mark = lowwater.Set(c.raw, mark)
	}
	return c.Link.Read(into)
}

// markFor what is missing leaves out what TLS may have read ahead.
func (c *conn) markFor(missing int) int64 {
	if c.raw == nil || missing < largeAnswer {
		return 1
	}
	return min(mostMark, int64(missing/2))
}

func (c *conn) Write(request []byte) (int, error) {
	number, err := c.Link.Write(request)
	if err != nil || len(request) < sizeBytes+keyBytes {
		return number, err
	}
	switch binary.BigEndian.Uint16(request[sizeBytes:]) {
	case produceKey:
		c.owner.written.Add(records(request))
	case fetchKey:
		c.owner.asked()
	default:
		return number, nil
	}
	if !c.stands.Swap(true) {
		c.owner.carries()
	}
	return number, nil
}

func (c *conn) Close() error {
	c.once.Do(func() { c.owner.ended(c) })
	return c.Link.Close()
}

// records are those in a request to produce.
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
