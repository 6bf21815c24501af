package payload

import (
	"io"
	"slices"
)

const (
	// PoolBytes is the minimum size of a pool: Kafka's largest batch, so that no content occurs twice in a batch.
	PoolBytes = 16 << 20

	// NumberBytes is the number of bytes that hold the number of a message. A message that is not longer has no content.
	NumberBytes = 8
)

// Pool holds the content of messages, created once and shared by all pairs. Message n of each pair is entry n mod the number of
// entries, with n in its first NumberBytes. Entries are a user's messages, or have one size and come from one generator. Then
// there are as few as fill PoolBytes.
type Pool struct {
	own     [][]byte
	bytes   []byte
	size    int
	entries uint64
}

// Content returns the content of message `number`. The caller must not change it.
func (p *Pool) Content(number uint64) []byte {
	if p.own != nil {
		return p.own[number%uint64(len(p.own))]
	}
	start := int(number%p.entries) * p.size
	return p.bytes[start : start+p.size : start+p.size]
}

// Next returns the first number from this one on whose content is the first entry.
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

// Largest returns the number of a message of maximum size.
func (p *Pool) Largest() (number uint64) {
	for index, one := range p.own {
		if len(one) > len(p.own[number]) {
			number = uint64(index)
		}
	}
	return number
}

// Sizes returns the number of entries, and the size of each, or the one that all have.
func (p *Pool) Sizes() (entries uint64, sizes []int) {
	if p.own == nil {
		return p.entries, []int{p.size}
	}
	for _, one := range p.own {
		sizes = append(sizes, len(one))
	}
	return uint64(len(p.own)), sizes
}

// WriteTo writes all entries, one after another.
func (p *Pool) WriteTo(out io.Writer) (int64, error) {
	number, err := out.Write(slices.Concat(append(p.own, p.bytes)...))
	return int64(number), err
}

// each calls fill for every entry, in order.
func (p *Pool) each(fill func(entry []byte)) {
	for number := range p.entries {
		fill(p.Content(number))
	}
}
