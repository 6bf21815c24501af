package payload

const (
	// PoolBytes is the least that a pool holds: Kafka's largest batch, in which then no content comes twice.
	PoolBytes = 16 << 20

	// NumberBytes of a message are its number; what is no longer has no content.
	NumberBytes = 8
)

// Pool is the content of messages, made once and shared by all pairs. Message n of each pair is entry n mod the number of
// entries, its first NumberBytes replaced by n. Entries have a message's size and are made one after the other by one
// generator, the fewest that are together no less than PoolBytes.
type Pool struct {
	bytes   []byte
	size    int
	entries uint64
}

// Size of a message in bytes.
func (p *Pool) Size() int { return p.size }

// Content of message `number`; it must not be changed.
func (p *Pool) Content(number uint64) []byte {
	start := int(number%p.entries) * p.size
	return p.bytes[start : start+p.size : start+p.size]
}

func newPool(size int) *Pool {
	entries := 1
	if size > NumberBytes {
		entries = (PoolBytes + size - 1) / size
	}
	return &Pool{make([]byte, entries*size), size, uint64(entries)}
}

// each gives every entry to fill, in order.
func (p *Pool) each(fill func(entry []byte)) {
	for number := range p.entries {
		fill(p.Content(number))
	}
}
