// Package payload creates the content of messages, and encodes it as clients send it.
package payload

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

const (
	ratioPrefix = "Ratio"
	segment     = 1024 // bytes of which a share is random, the rest zeros
	sensors     = 16

	// zerosLeave is the share of zeros that compression leaves: 0.005 with Gzip, Lz4 and Zstd, and 0.06 with Snappy, which copies
	// at most 64 bytes.
	zerosLeave = 0.025
)

// New creates a pool of messages of size bytes: Random, Zeros, SensorJSON, or RatioNN, of which compression leaves NN%. The same
// seed gives the same bytes.
func New(kind string, size int, seed uint64) (*Pool, error) {
	source := rand.NewChaCha8(seedOf(seed, size))
	switch {
	case kind == "Zeros":
		return newPool(size), nil
	case kind == "Random":
		pool := newPool(size)
		_, _ = source.Read(pool.bytes) // never fails
		return pool, nil
	case kind == "SensorJSON":
		pool := newPool(size)
		pool.each(newRoom(source).fill)
		return pool, nil
	}
	share, is := strings.CutPrefix(kind, ratioPrefix)
	percent, err := strconv.Atoi(share)
	if !is || err != nil || percent < 1 || percent > 99 {
		return nil, fmt.Errorf("content is %q: write Random, Zeros, SensorJSON or Ratio10 … Ratio90", kind)
	}
	pool := newPool(size)
	pool.each(func(entry []byte) { mix(source, entry, percent) })
	return pool, nil
}

func seedOf(seed uint64, size int) (whole [32]byte) {
	binary.BigEndian.PutUint64(whole[:], seed)
	binary.BigEndian.PutUint64(whole[8:], uint64(size))
	return whole
}

// mix makes a share of each segment random, which cannot be compressed, and leaves zeros, of which little remains.
func mix(source *rand.ChaCha8, content []byte, percent int) {
	share := (float64(percent)/100 - zerosLeave) / (1 - zerosLeave)
	for start := 0; start < len(content); start += segment {
		part := content[start:min(start+segment, len(content))]
		_, _ = source.Read(part[:int(max(0, share)*float64(len(part))+0.5)]) // never fails
	}
}

var firstRecord = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// room holds the values of the sensors, which drift from record to record and from message to message.
type room struct {
	random                          *rand.Rand
	number                          int
	temperature, humidity, pressure float64
	text                            []byte
}

func newRoom(source rand.Source) *room {
	return &room{random: rand.New(source), temperature: 21, humidity: 45, pressure: 1013}
}

// fill writes a JSON array of measurements, cut at the end of content.
func (r *room) fill(content []byte) {
	r.text = append(r.text[:0], '[')
	for len(r.text) < len(content) {
		r.measure()
	}
	copy(content, r.text)
}

// measure writes one record without an encoder, because a pool needs many records.
func (r *room) measure() {
	r.temperature += r.random.NormFloat64() / 10
	r.humidity += r.random.NormFloat64() / 5
	r.pressure += r.random.NormFloat64() / 20
	r.number++
	text := fmt.Appendf(r.text, `{"device":"sensor-%02d","time":"`, r.number%sensors)
	text = firstRecord.Add(time.Duration(r.number)*250*time.Millisecond).AppendFormat(text, time.RFC3339Nano)
	text = strconv.AppendFloat(append(text, `","temperature":`...), r.temperature, 'f', 2, 64)
	text = strconv.AppendFloat(append(text, `,"humidity":`...), r.humidity, 'f', 2, 64)
	text = strconv.AppendFloat(append(text, `,"pressure":`...), r.pressure, 'f', 2, 64)
	text = strconv.AppendInt(append(text, `,"battery":`...), int64(100-r.number/1000%100), 10)
	r.text = append(text, `,"status":"ok"},`...)
}
