package tcptrace

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"
)

// Trace is TCP over time: a list for each value. All lists of a connection are as long as its times.
type Trace struct {
	IntervalMilliseconds int64        `json:"intervalMilliseconds"`
	Connections          []Connection `json:"connections"`
}

// Connection is a connection of a trace. A threshold of 0 means that none was set yet: slow start.
type Connection struct {
	Port                          int64   `json:"port"`
	Milliseconds                  []int64 `json:"milliseconds"`
	CongestionWindowBytes         []int64 `json:"congestionWindowBytes"`
	SlowStartThresholdBytes       []int64 `json:"slowStartThresholdBytes"`
	RoundTripMicroseconds         []int64 `json:"roundTripMicroseconds"`
	RoundTripVarianceMicroseconds []int64 `json:"roundTripVarianceMicroseconds"`
	Retransmits                   []int64 `json:"retransmits"`
	DeliveryBitsPerSecond         []int64 `json:"deliveryBitsPerSecond"`
	State                         []int64 `json:"state"`
}

func newTrace(interval time.Duration, connections []*connection) *Trace {
	total := 0
	for _, one := range connections {
		total += len(one.samples)
	}
	stride := max(1, (total+mostTraced-1)/mostTraced)
	trace := &Trace{IntervalMilliseconds: interval.Milliseconds() * int64(stride)}
	for _, one := range connections {
		row := Connection{Port: int64(one.port)}
		for index := 0; index < len(one.samples); index += stride {
			row.add(one.samples[index])
		}
		trace.Connections = append(trace.Connections, row)
	}
	slices.SortStableFunc(trace.Connections, func(one, other Connection) int { return int(one.Port - other.Port) })
	return trace
}

func (c *Connection) add(sample sample) {
	info := sample.info
	segment := int64(info.Snd_mss)
	threshold := int64(info.Snd_ssthresh) * segment
	if info.Snd_ssthresh >= noThreshold {
		threshold = 0
	}
	c.Milliseconds = append(c.Milliseconds, sample.at.Milliseconds())
	c.CongestionWindowBytes = append(c.CongestionWindowBytes, int64(info.Snd_cwnd)*segment)
	c.SlowStartThresholdBytes = append(c.SlowStartThresholdBytes, threshold)
	c.RoundTripMicroseconds = append(c.RoundTripMicroseconds, int64(info.Rtt))
	c.RoundTripVarianceMicroseconds = append(c.RoundTripVarianceMicroseconds, int64(info.Rttvar))
	c.Retransmits = append(c.Retransmits, int64(info.Total_retrans))
	c.DeliveryBitsPerSecond = append(c.DeliveryBitsPerSecond, int64(info.Delivery_rate)*8)
	c.State = append(c.State, int64(min(int(info.Ca_state), len(states)-1)))
}

// Encode returns the trace as text: JSON, compressed with gzip, in base64.
func (t *Trace) Encode() string {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	// Neither numbers nor memory cause an error.
	_ = json.NewEncoder(writer).Encode(t)
	_ = writer.Close()
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}
