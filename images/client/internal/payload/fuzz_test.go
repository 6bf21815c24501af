package payload

import (
	"bytes"
	"testing"
)

// FuzzDecode decodes messages of other users of the broker.
func FuzzDecode(f *testing.F) {
	for _, compression := range []string{"Gzip", "Zstd"} {
		codec, err := NewCodec(compression, "None", nil)
		if err != nil {
			f.Fatal(err)
		}
		for _, plain := range [][]byte{[]byte("message"), make([]byte, 2*mostBytes)} {
			packed, err := codec.Encode(plain)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(compression, bytes.Clone(packed))
		}
	}
	f.Fuzz(func(t *testing.T, compression string, message []byte) {
		codec, err := NewCodec(compression, "None", nil)
		if err != nil {
			return
		}
		if plain, err := codec.Decode(message); err == nil && len(plain) > mostBytes && !codec.Plain() {
			t.Errorf("%d bytes of %d", len(plain), len(message))
		}
	})
}

func TestLargestMessageIsDecoded(t *testing.T) {
	for _, compression := range []string{"Gzip", "Zstd"} {
		codec, err := NewCodec(compression, "None", nil)
		if err != nil {
			t.Fatal(err)
		}
		packed, err := codec.Encode(make([]byte, mostBytes))
		if err != nil {
			t.Fatal(err)
		}
		if plain, err := codec.Decode(packed); err != nil || len(plain) != mostBytes {
			t.Errorf("%s: %d bytes, %v", compression, len(plain), err)
		}
	}
}
