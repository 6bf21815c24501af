package payload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"testing"
)

var key = []byte("0123456789abcdef")

func TestCompressionReachesRequestedRatio(t *testing.T) {
	for _, compression := range []string{"Gzip", "Zstd"} {
		for percent := 10; percent <= 90; percent += 10 {
			for _, size := range []int{10 << 10, 100 << 10} {
				kind := fmt.Sprintf("Ratio%d", percent)
				content := made(t, kind, size)
				packed := encoded(t, compression, "None", content)
				if share := float64(len(packed)) / float64(size); math.Abs(share-float64(percent)/100) > 0.02 {
					t.Errorf("%s of %s, %d bytes: %.3f of its size", compression, kind, size, share)
				}
			}
		}
	}
}

func TestContentsMatchTheirNames(t *testing.T) {
	const size = 10 << 10
	if packed := encoded(t, "Gzip", "None", made(t, "Random", size)); len(packed) < size {
		t.Errorf("random bytes were compressed to %d of %d", len(packed), size)
	}
	if packed := encoded(t, "Zstd", "None", made(t, "Zeros", size)); len(packed) > size/100 {
		t.Errorf("zeros were compressed to %d of %d only", len(packed), size)
	}
	text := made(t, "SensorJSON", size)
	decoder := json.NewDecoder(bytes.NewReader(text))
	if _, err := decoder.Token(); err != nil {
		t.Fatal(err)
	}
	var first map[string]any
	if err := decoder.Decode(&first); err != nil || first["device"] == "" {
		t.Errorf("%.80s: %v", text, err)
	}
	if packed := encoded(t, "Gzip", "None", text); len(packed) > size/2 {
		t.Errorf("records of sensors were compressed to %d of %d only", len(packed), size)
	}
}

func TestDecodeRestoresEncodedMessage(t *testing.T) {
	for _, compression := range []string{"None", "Gzip", "Gzip:1", "Zstd", "Zstd:11"} {
		for _, encryption := range []string{"None", "AES128GCM"} {
			codec := coder(t, compression, encryption)
			for _, size := range []int{2, 100, 5000} {
				content := made(t, "SensorJSON", size)
				message, err := codec.Encode(content)
				if err != nil {
					t.Fatal(err)
				}
				plain, err := codec.Decode(bytes.Clone(message))
				if err != nil || !bytes.Equal(plain, content) {
					t.Errorf("%s, %s, %d bytes: %v", compression, encryption, size, err)
				}
			}
			spent := codec.Spent()
			if (spent.Compress > 0) != (compression != "None") || (spent.Decrypt > 0) != (encryption != "None") {
				t.Errorf("%s, %s: %+v", compression, encryption, spent)
			}
		}
	}
}

func TestForgedMessageIsRefused(t *testing.T) {
	codec := coder(t, "None", "AES128GCM")
	message, err := codec.Encode([]byte("message"))
	if err != nil {
		t.Fatal(err)
	}
	for _, forged := range [][]byte{message[:5], append(bytes.Clone(message), 0), {}} {
		if _, err := codec.Decode(forged); err == nil {
			t.Errorf("%x was accepted", forged)
		}
	}
}

func TestUnknownContentAndCompressionAreRefused(t *testing.T) {
	for _, kind := range []string{"", "Ratio", "Ratio0", "Ratio100", "random"} {
		if _, err := New(kind, 10, 1); err == nil {
			t.Errorf("content %q was accepted", kind)
		}
	}
	for _, compression := range []string{"", "Gzip:0", "Gzip:10", "Zstd:2", "Zstd:22", "Zstd:", "Brotli", "None:1"} {
		if _, err := NewCodec(compression, "None", nil); err == nil {
			t.Errorf("compression %q was accepted", compression)
		}
	}
	if _, err := NewCodec("None", "AES128GCM", []byte("short")); err == nil {
		t.Error("a short key was accepted")
	}
}

func made(t *testing.T, kind string, size int) []byte {
	t.Helper()
	pool, err := New(kind, size, 1)
	if err != nil {
		t.Fatal(err)
	}
	return pool.Content(0)
}

func coder(t *testing.T, compression, encryption string) *Codec {
	t.Helper()
	codec, err := NewCodec(compression, encryption, key)
	if err != nil {
		t.Fatal(err)
	}
	return codec
}

func encoded(t *testing.T, compression, encryption string, content []byte) []byte {
	t.Helper()
	message, err := coder(t, compression, encryption).Encode(content)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(message)
}
