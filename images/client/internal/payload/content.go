// Package payload makes what messages carry, and encodes it as the clients send it.
package payload

import (
	"encoding/json"
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
)

// New makes size bytes of a kind: Random, Zeros, SensorJSON, or RatioNN, of which compression leaves NN %. The same seed
// gives the same bytes.
func New(kind string, size int, seed uint64) ([]byte, error) {
	random := rand.New(rand.NewPCG(seed, uint64(size)))
	content := make([]byte, size)
	switch {
	case kind == "Zeros":
	case kind == "Random":
		fill(random, content)
	case kind == "SensorJSON":
		records(random, content)
	case strings.HasPrefix(kind, ratioPrefix):
		percent, err := strconv.Atoi(strings.TrimPrefix(kind, ratioPrefix))
		if err != nil || percent < 1 || percent > 99 {
			return nil, unknown(kind)
		}
		mix(random, content, percent)
	default:
		return nil, unknown(kind)
	}
	return content, nil
}

func unknown(kind string) error {
	return fmt.Errorf("content is %q: write Random, Zeros, SensorJSON or Ratio10 … Ratio90", kind)
}

func fill(random *rand.Rand, content []byte) {
	for index := range content {
		content[index] = byte(random.Uint32())
	}
}

// mix makes a share of each segment random, which no compression makes smaller, and leaves zeros, of which nothing remains.
func mix(random *rand.Rand, content []byte, percent int) {
	for start := 0; start < len(content); start += segment {
		part := content[start:min(start+segment, len(content))]
		fill(random, part[:len(part)*percent/100])
	}
}

type record struct {
	Device      string    `json:"device"`
	Time        time.Time `json:"time"`
	Temperature float64   `json:"temperature"`
	Humidity    float64   `json:"humidity"`
	Pressure    float64   `json:"pressure"`
	Battery     int       `json:"battery"`
	Status      string    `json:"status"`
}

// records fills content with the JSON of measurements that drift as a room's do, cut where content ends.
func records(random *rand.Rand, content []byte) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	temperature, humidity, pressure := 21.0, 45.0, 1013.0
	text := append(make([]byte, 0, len(content)+256), '[')
	for number := 0; len(text) < len(content); number++ {
		temperature += random.NormFloat64() / 10
		humidity += random.NormFloat64() / 5
		pressure += random.NormFloat64() / 20
		line, err := json.Marshal(record{
			Device:      fmt.Sprintf("sensor-%02d", number%sensors),
			Time:        at.Add(time.Duration(number) * 250 * time.Millisecond),
			Temperature: rounded(temperature), Humidity: rounded(humidity), Pressure: rounded(pressure),
			Battery: 100 - number/1000, Status: "ok",
		})
		if err != nil {
			panic(err) // numbers and strings alone
		}
		text = append(append(text, line...), ',')
	}
	copy(content, text)
}

func rounded(value float64) float64 { return float64(int(value*100)) / 100 }
