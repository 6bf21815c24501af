package payload

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

var batchCodecs = map[string]kgo.CompressionCodec{
	"Gzip": kgo.GzipCompression(), "Snappy": kgo.SnappyCompression(), "Lz4": kgo.Lz4Compression(), "Zstd": kgo.ZstdCompression(),
}

// batched returns the share of a batch of 1 MiB that remains after compression by a codec of Kafka.
func batched(t *testing.T, codec, kind string, size int) float64 {
	t.Helper()
	pool, err := New(kind, size, 1)
	if err != nil {
		t.Fatal(err)
	}
	var batch bytes.Buffer
	for number := uint64(0); batch.Len() < 1<<20; number++ {
		batch.Write(pool.Content(number))
	}
	compressor, err := kgo.DefaultCompressor(batchCodecs[codec])
	if err != nil {
		t.Fatal(err)
	}
	plain := batch.Len()
	packed, _ := compressor.Compress(new(bytes.Buffer), batch.Bytes())
	return float64(len(packed)) / float64(plain)
}

func TestBatchCodecsReachRequestedRatio(t *testing.T) {
	for codec := range batchCodecs {
		for _, size := range []int{1 << 10, 10 << 10, 100 << 10} {
			if share := batched(t, codec, "Random", size); share < 0.99 {
				t.Errorf("%s: %.4f of random messages of %d bytes", codec, share, size)
			}
			if share := batched(t, codec, "Ratio50", size); share < 0.48 || share > 0.52 {
				t.Errorf("%s: %.4f of messages of %d bytes with Ratio50", codec, share, size)
			}
		}
	}
}

func TestLargestBatchHasNoRepeatedContent(t *testing.T) {
	for _, kind := range []string{"Random", "SensorJSON", "Ratio30"} {
		for _, size := range []int{1 << 10, 1<<20 + 1, PoolBytes} {
			t.Run(fmt.Sprint(kind, size), func(t *testing.T) {
				pool, err := New(kind, size, 1)
				if err != nil {
					t.Fatal(err)
				}
				seen := map[string]bool{}
				for number := uint64(7); int(number-6)*size <= PoolBytes; number++ {
					content := string(pool.Content(number))
					if len(content) != size || seen[content] {
						t.Fatalf("message %d has the content of another", number)
					}
					seen[content] = true
				}
			})
		}
	}
}
