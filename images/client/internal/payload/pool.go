package payload

import "slices"

const (
	// PoolBytes is the least that a pool holds: Kafka's largest batch, in which then no content comes twice.
	PoolBytes = 16 << 20

	// NumberBytes of a message are its number; what is no longer has no content.
	NumberBytes = 8
)

// Pool is the content of messages, made once and shared by all pairs. Message n of each pair is entry n mod the number of
// entries, its first NumberBytes replaced by n. Entries are a user's own, or have one size and are made one after the other
// by one generator, the fewest that are together no less than PoolBytes.
type Pool struct {
	own     [][]byte
	bytes   []byte
	size    int
	entries uint64
}

// Content of message `number`; it must not be changed.
func (p *Pool) Content(number uint64) []byte {
	if p.own != nil {
		return p.own[number%uint64(len(p.own))]
	}
	start := int(number%p.entries) * p.size
	return p.bytes[start : start+p.size : start+p.size]
}

// Next is the first number from this on whose content is the first entry.
func (p *Pool) Next(number uint64) uint64 {
	entries := p.entries
	if p.own != nil {
		entries = uint64(len(p.own))
	}
	return (number + entries - 1) / entries * entries
}

func newPool(size int) *Pool {
	entries := 1
	if size > NumberBytes {
		entries = (PoolBytes + size - 1) / size
	}
	return &Pool{bytes: make([]byte, entries*size), size: size, entries: uint64(entries)}
}

// Largest is the content of a message that is no smaller than any.
func (p *Pool) Largest() []byte {
	if p.own != nil {
		return slices.MaxFunc(p.own, func(one, other []byte) int { return len(one) - len(other) })
	}
	return p.Content(0)
}

// each gives every entry to fill, in order.
func (p *Pool) each(fill func(entry []byte)) {
	for number := range p.entries {
		fill(p.Content(number))
	}
}
