package payload

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	usualGzip = 6
	mostBytes = 16 << 20 // of a message; one that unpacks to more is not from tierbench
)

// speeds are the levels of the library, by the level of zstd that each is closest to.
var speeds = map[string]zstd.EncoderLevel{
	"Zstd:1": zstd.SpeedFastest, "Zstd:3": zstd.SpeedDefault, "Zstd:7": zstd.SpeedBetterCompression, "Zstd:11": zstd.SpeedBestCompression,
}

// Spent is the time spent on each step.
type Spent struct{ Compress, Encrypt, Decrypt, Decompress time.Duration }

// Since returns the difference to earlier times.
func (s Spent) Since(earlier Spent) Spent {
	return Spent{s.Compress - earlier.Compress, s.Encrypt - earlier.Encrypt, s.Decrypt - earlier.Decrypt, s.Decompress - earlier.Decompress}
}

// Add adds other times.
func (s *Spent) Add(other Spent) {
	s.Compress, s.Encrypt = s.Compress+other.Compress, s.Encrypt+other.Encrypt
	s.Decrypt, s.Decompress = s.Decrypt+other.Decrypt, s.Decompress+other.Decompress
}

// Codec compresses and encrypts, and reverses both. It is for one goroutine. What it returns is valid until the next call.
type Codec struct {
	compressor compressor
	aead       cipher.AEAD
	spent      Spent
	sealed     []byte
	opened     []byte
}

type compressor interface {
	compress(plain []byte) ([]byte, error)
	decompress(packed []byte) ([]byte, error)
}

// NewCodec supports the compressions None, Gzip and Zstd, with :LEVEL where the library has the level, and the encryptions None
// and AES128GCM.
func NewCodec(compression, encryption string, key []byte) (*Codec, error) {
	codec := &Codec{}
	var err error
	if codec.compressor, err = newCompressor(compression); err != nil {
		return nil, err
	}
	switch encryption {
	case "None":
	case "AES128GCM":
		if len(key) != 16 {
			return nil, fmt.Errorf("the payload key has %d bytes, AES128GCM needs 16", len(key))
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		if codec.aead, err = cipher.NewGCM(block); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("encryption is %q: write None or AES128GCM", encryption)
	}
	return codec, nil
}

// Plain reports whether messages are sent unchanged.
func (c *Codec) Plain() bool { return c.compressor == nil && c.aead == nil }

// Spent returns the time spent so far.
func (c *Codec) Spent() Spent { return c.spent }

// Encode returns the bytes to send for plain.
func (c *Codec) Encode(plain []byte) ([]byte, error) {
	message := plain
	if c.compressor != nil {
		started := time.Now()
		packed, err := c.compressor.compress(message)
		c.spent.Compress += time.Since(started)
		if err != nil {
			return nil, err
		}
		message = packed
	}
	if c.aead != nil {
		started := time.Now()
		message = c.seal(message)
		c.spent.Encrypt += time.Since(started)
	}
	return message, nil
}

func (c *Codec) seal(plain []byte) []byte {
	size := c.aead.NonceSize()
	if cap(c.sealed) < size {
		c.sealed = make([]byte, size, size+len(plain)+c.aead.Overhead())
	}
	nonce := c.sealed[:size]
	_, _ = rand.Read(nonce) // never fails
	c.sealed = c.aead.Seal(nonce, nonce, plain, nil)
	return c.sealed
}

// Decode returns what Encode was given.
func (c *Codec) Decode(message []byte) ([]byte, error) {
	plain := message
	if c.aead != nil {
		started := time.Now()
		size := c.aead.NonceSize()
		if len(message) < size {
			return nil, errors.New("the message is shorter than its nonce")
		}
		opened, err := c.aead.Open(c.opened[:0], message[:size], message[size:], nil)
		c.spent.Decrypt += time.Since(started)
		if err != nil {
			return nil, err
		}
		c.opened, plain = opened, opened
	}
	if c.compressor != nil {
		started := time.Now()
		unpacked, err := c.compressor.decompress(plain)
		c.spent.Decompress += time.Since(started)
		if err != nil {
			return nil, err
		}
		plain = unpacked
	}
	return plain, nil
}

func newCompressor(text string) (compressor, error) {
	name, level, given := strings.Cut(text, ":")
	number, err := strconv.Atoi(level)
	switch {
	case text == "None":
		return nil, nil
	case name == "Gzip" && !given:
		return newGzip(usualGzip)
	case name == "Gzip" && err == nil && number >= 1 && number <= 9:
		return newGzip(number)
	case text == "Zstd":
		return newZstd(zstd.SpeedDefault)
	}
	if speed, known := speeds[text]; known {
		return newZstd(speed)
	}
	return nil, fmt.Errorf("compression is %q: write None, Gzip, Zstd, or with a level Gzip:1 … Gzip:9, Zstd:1, Zstd:3, Zstd:7 or Zstd:11", text)
}

type gzipCodec struct {
	writer *gzip.Writer
	reader gzip.Reader
	packed bytes.Buffer
	plain  bytes.Buffer
	source bytes.Reader
}

func newGzip(level int) (compressor, error) {
	writer, err := gzip.NewWriterLevel(io.Discard, level)
	return &gzipCodec{writer: writer}, err
}

func (g *gzipCodec) compress(plain []byte) ([]byte, error) {
	g.packed.Reset()
	g.writer.Reset(&g.packed)
	if _, err := g.writer.Write(plain); err != nil {
		return nil, err
	}
	if err := g.writer.Close(); err != nil {
		return nil, err
	}
	return g.packed.Bytes(), nil
}

func (g *gzipCodec) decompress(packed []byte) ([]byte, error) {
	g.source.Reset(packed)
	if err := g.reader.Reset(&g.source); err != nil {
		return nil, err
	}
	g.plain.Reset()
	if _, err := g.plain.ReadFrom(io.LimitReader(&g.reader, mostBytes+1)); err != nil {
		return nil, err
	}
	if g.plain.Len() > mostBytes {
		return nil, fmt.Errorf("the message unpacks to more than %d bytes", mostBytes)
	}
	return g.plain.Bytes(), nil
}

type zstdCodec struct {
	encoder       *zstd.Encoder
	decoder       *zstd.Decoder
	packed, plain []byte
}

func newZstd(speed zstd.EncoderLevel) (compressor, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(speed), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostBytes))
	return &zstdCodec{encoder: encoder, decoder: decoder}, err
}

func (z *zstdCodec) compress(plain []byte) ([]byte, error) {
	z.packed = z.encoder.EncodeAll(plain, z.packed[:0])
	return z.packed, nil
}

func (z *zstdCodec) decompress(packed []byte) (plain []byte, err error) {
	z.plain, err = z.decoder.DecodeAll(packed, z.plain[:0])
	return z.plain, err
}
