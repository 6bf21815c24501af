// Package engine is the driver of engines: separate programs that connect to a broker, send, receive and take the
// times.
//
// docs/reference/engine-protocol.md describes how the harness and an engine talk.
package engine

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"

	"tierbench.io/client/internal/contract"
)

const (
	protocol    = 1
	lineBytes   = 64 << 10 // of an engine
	recordBytes = 24
	wordBytes   = 63 // of a reason or a name
)

// Kinds of events.
const (
	sent = iota + 1
	acknowledged
	arrived
	corrupt
)

// event is something that happened to a message, at a time of CLOCK_MONOTONIC.
type event struct {
	kind, connection uint16
	bytes            uint32
	number           uint64
	at               int64
}

func decode(record []byte) event {
	return event{
		binary.LittleEndian.Uint16(record), binary.LittleEndian.Uint16(record[2:]), binary.LittleEndian.Uint32(record[4:]),
		binary.LittleEndian.Uint64(record[8:]), int64(binary.LittleEndian.Uint64(record[16:])),
	}
}

// hello is the first line of an engine.
type hello struct {
	Protocol     int      `json:"protocol"`
	Name         string   `json:"name"`
	Version      string   `json:"version"`
	Clock        int64    `json:"clock"`
	Processors   int      `json:"processors"`
	Prepares     bool     `json:"prepares"`
	Schemes      []string `json:"schemes"`
	Deliveries   []string `json:"deliveries"`
	MQTTVersions []string `json:"mqttVersions"`
	Compressions []string `json:"compressions"`
	Encryptions  []string `json:"encryptions"`
}

// trouble is why a request failed. Without a reason, it may succeed later.
type trouble struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// failure returns the error of a request.
func (t *trouble) failure() error {
	if t.Reason == "" {
		return fmt.Errorf("%s", t.Message)
	}
	if !isReason(t.Reason) {
		return invalid("its reason %.100q is not a word in CamelCase", t.Reason)
	}
	return &contract.Failure{Reason: t.Reason, Message: t.Message}
}

func isReason(text string) bool {
	if len(text) > wordBytes || text == "" || text[0] < 'A' || text[0] > 'Z' {
		return false
	}
	for _, letter := range text {
		if !(letter >= 'A' && letter <= 'Z' || letter >= 'a' && letter <= 'z' || letter >= '0' && letter <= '9') {
			return false
		}
	}
	return true
}

// isName reports whether a text is short and printable.
func isName(text string) bool {
	return text != "" && len(text) <= wordBytes && !strings.ContainsFunc(text, func(letter rune) bool { return !unicode.IsPrint(letter) })
}

// line is what an engine may write.
type line struct {
	Hello  *hello   `json:"hello"`
	ID     int      `json:"id"`
	Error  *trouble `json:"error"`
	Failed *trouble `json:"failed"`
	Events []byte   `json:"events"`
	Down   uint16   `json:"down"`
	Up     uint16   `json:"up"`
	Resent int64    `json:"resent"`
	answer
}

// answer is what an engine may answer to a request.
type answer struct {
	Connect    int64    `json:"connectNanoseconds"`
	TLS        int64    `json:"tlsNanoseconds"`
	Cipher     string   `json:"cipher"`
	Local      string   `json:"local"`
	Sent       int64    `json:"sent"`
	TCPInfo    []byte   `json:"tcpInfo"`
	Others     [][]byte `json:"otherTcpInfos"` // of further sockets
	Compress   int64    `json:"compressNanoseconds"`
	Encrypt    int64    `json:"encryptNanoseconds"`
	Decrypt    int64    `json:"decryptNanoseconds"`
	Decompress int64    `json:"decompressNanoseconds"`
}

// request is what the harness asks for.
type request struct {
	ID         int    `json:"id"`
	Do         string `json:"do"`
	Connection uint16 `json:"connection"`
	*Broker           // of connect
	*Content          // of connect
	*course           // of send
	Name       string `json:"name,omitempty"`
	Topic      string `json:"topic,omitempty"`
	Echo       string `json:"echo,omitempty"`
	Receives   bool   `json:"receives,omitempty"` // of connect
}

// Broker describes a connection.
type Broker struct {
	Scheme      string `json:"scheme"`
	Host        string `json:"host"`
	Port        int    `json:"port"`
	TLS         string `json:"tls"` // None, TLSv1.2 or TLSv1.3
	ServerName  string `json:"serverName"`
	CAFile      string `json:"caFile"`
	Username    string `json:"username"`
	Password    string `json:"password"`
	Delivery    string `json:"delivery"`
	MQTTVersion string `json:"mqttVersion,omitempty"`
	Compression string `json:"compression"`
	Encryption  string `json:"encryption"`
	KeyFile     string `json:"keyFile"`
}

// Content describes the content of file descriptor 3.
type Content struct {
	Entries uint64 `json:"entries"`
	Sizes   []int  `json:"sizes"`
}

// course is a run of messages. Times are those of CLOCK_MONOTONIC.
type course struct {
	First          uint64 `json:"first"`
	Messages       int64  `json:"messages"`
	Bytes          int    `json:"bytes"`
	Start          int64  `json:"startNanoseconds"`
	Interval       int64  `json:"intervalNanoseconds"`
	Until          int64  `json:"untilNanoseconds"`
	Window         int    `json:"window"`
	Frees          string `json:"frees"` // Arrival, Acknowledgement or Write
	Back           uint16 `json:"back"`
	Unacknowledged int    `json:"unacknowledged"`
}

func invalid(format string, values ...any) *contract.Failure {
	return &contract.Failure{Reason: "EngineInvalid", Message: "the engine does not keep to its protocol: " + fmt.Sprintf(format, values...)}
}
