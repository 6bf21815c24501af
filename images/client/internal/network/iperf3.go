package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/sockdiag"
)

const (
	connecting = 5 * time.Second
	// The time that iperf3 may take after the load. It waits half a minute for an answer to a UDP stream, and exchanges its
	// results at the end.
	lingering = time.Minute
	longest   = 1e6 // milliseconds of anything that is read
	// The server answers within a round trip. But if another program connects first and is silent, the server waits for it.
	greeting = 10 * time.Second
)

var errNoAnswer = errors.New("the server does not answer")

// iperf3Report contains the fields of iperf3's --json output that are used.
type iperf3Report struct {
	Error string `json:"error"`
	Start struct {
		Version string    `json:"version"`
		Test    *struct{} `json:"test_start"` // nil: the load has not begun
	} `json:"start"`
	End struct {
		Sent            *iperf3Sum `json:"sum_sent"`
		Received        *iperf3Sum `json:"sum_received"`
		ReverseSent     *iperf3Sum `json:"sum_sent_bidir_reverse"`
		ReverseReceived *iperf3Sum `json:"sum_received_bidir_reverse"`
		// The algorithms that the sockets had at the end.
		SenderCongestion   string `json:"sender_tcp_congestion"`
		ReceiverCongestion string `json:"receiver_tcp_congestion"`
		Streams            []struct {
			UDP *struct {
				OutOfOrder int64 `json:"out_of_order"`
				Sender     bool  `json:"sender"`
			} `json:"udp"`
		} `json:"streams"`
	} `json:"end"`
}

// iperf3Sum is what one side reports about one direction, summed over the streams.
type iperf3Sum struct {
	Seconds            float64  `json:"seconds"`
	BitsPerSecond      float64  `json:"bits_per_second"`
	Bytes              int64    `json:"bytes"`
	Retransmits        *int64   `json:"retransmits"`
	JitterMilliseconds *float64 `json:"jitter_ms"`
	LostPackets        *int64   `json:"lost_packets"`
	Packets            *int64   `json:"packets"`
}

// isPossible reports whether the numbers can be true. A server may make them up.
func (s *iperf3Sum) isPossible() bool {
	return s.Seconds >= 0 && s.Seconds < 1e6 && s.BitsPerSecond >= 0 && s.BitsPerSecond < 1e15 && s.Bytes >= 0
}

// traffic is the traffic that iperf3 measured. took is how long the senders sent, and threads is the number of threads at either
// side. The congestion control of a side is empty if iperf3 does not report it.
type traffic struct {
	upload, download                   *contract.Flow
	took                               time.Duration
	threads                            int
	clientCongestion, serverCongestion string
}

// transmit makes the load of one trial. An error is a *contract.Failure or context.Canceled.
func transmit(ctx context.Context, options *Options) (traffic, error) {
	watched, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer time.AfterFunc(greeting, func() {
		if !answers(options.Port) {
			end(errNoAnswer)
		}
	}).Stop()
	written, stderr, err := run(watched, options.Duration+lingering, "iperf3", iperf3Arguments(options)...)
	if errors.Is(context.Cause(watched), errNoAnswer) {
		message := fmt.Sprintf("%v within %v: another connection to it may be silent; see who else connects to this server", errNoAnswer, greeting)
		return traffic{}, &contract.Failure{Reason: serverBusy, Message: message}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return traffic{}, &contract.Failure{Reason: "Stalled", Message: fmt.Sprintf("iperf3 did not end within %v after its load: check the network", lingering)}
	}
	if err != nil {
		return traffic{}, err
	}
	return readIperf3(written, stderr, options)
}

// answers reports whether a server of this port has sent anything. It returns true as well without a connection, or if
// the kernel does not count.
func answers(port uint16) bool {
	silent := false
	for _, one := range watchPort(port).Look() {
		if one.Info.Bytes_received > 0 {
			return true
		}
		silent = silent || one.Info.Bytes_acked > 1 // the SYN counts, too
	}
	return !silent
}

// watchPort watches the connections to a server with this port.
func watchPort(port uint16) *sockdiag.Watch {
	return sockdiag.NewWatch(func(_, remote uint16) bool { return remote == port })
}

func iperf3Arguments(options *Options) []string {
	arguments := []string{
		"--client", options.Host, "--port", strconv.Itoa(int(options.Port)), "--json", "--interval", "0",
		"--time", strconv.FormatInt(int64(options.Duration.Seconds()), 10),
		"--parallel", strconv.Itoa(options.Streams),
		"--connect-timeout", strconv.FormatInt(connecting.Milliseconds(), 10),
	}
	if options.Protocol == UDP {
		arguments = append(arguments, "--udp", "--bitrate", strconv.FormatInt(options.BitsPerSecond/int64(options.Streams), 10))
	}
	if options.Congestion != "" {
		arguments = append(arguments, "--congestion", options.Congestion)
	}
	switch options.Direction {
	case Download:
		return append(arguments, "--reverse")
	case Bidirectional:
		return append(arguments, "--bidir")
	}
	return arguments
}

func readIperf3(written, stderr []byte, options *Options) (traffic, error) {
	direction, protocol := options.Direction, options.Protocol
	var report iperf3Report
	if err := json.Unmarshal(written, &report); err != nil {
		return traffic{}, &contract.Failure{Reason: "Iperf3Failed", Message: fmt.Sprintf("iperf3 printed no JSON (%v): %s", err, stderr)}
	}
	if report.Error != "" {
		return traffic{}, iperf3Failure(report.Error, report.Start.Test != nil, options)
	}
	end := report.End
	for _, sum := range []*iperf3Sum{end.Sent, end.Received, end.ReverseSent, end.ReverseReceived} {
		if sum != nil && !sum.isPossible() {
			return traffic{}, &contract.Failure{Reason: "Iperf3Failed", Message: fmt.Sprintf("iperf3 reports impossible numbers (%+v): check which program listens on this port", *sum)}
		}
	}
	forward, reverse := flow(end.Sent, end.Received, protocol), flow(end.ReverseSent, end.ReverseReceived, protocol)
	if forward == nil || (direction == Bidirectional && reverse == nil) {
		return traffic{}, &contract.Failure{Reason: "Iperf3Failed", Message: "iperf3 ended without its sums: is it a version that this client knows (3.7 or newer)?"}
	}
	if direction == Download {
		forward, reverse = nil, forward
	}
	for _, stream := range end.Streams {
		if stream.UDP == nil || protocol == TCP {
			continue
		}
		way := forward
		if direction == Download || (direction == Bidirectional && !stream.UDP.Sender) {
			way = reverse
		}
		*way.OutOfOrderPackets += stream.UDP.OutOfOrder
	}
	took := time.Duration(end.Sent.Seconds * float64(time.Second))
	seen := traffic{upload: forward, download: reverse, took: took, threads: threads(report.Start.Version, len(end.Streams))}
	seen.clientCongestion, seen.serverCongestion = congestion(end.SenderCongestion, end.ReceiverCongestion, direction)
	return seen, nil
}

// congestion returns the algorithms of client and server. If both send, iperf3 does not report which is which.
func congestion(sender, receiver, direction string) (client, server string) {
	switch {
	case direction == Download:
		return receiver, sender
	case direction == Bidirectional && sender != receiver:
		return "", ""
	}
	return sender, receiver
}

// threads returns the number of threads for a number of streams. Since version 3.16 each stream has its own thread. Before that
// there is one.
func threads(version string, streams int) int {
	var major, minor int
	if _, err := fmt.Sscanf(version, "iperf %d.%d", &major, &minor); err != nil {
		return 0
	}
	if major > 3 || (major == 3 && minor >= 16) {
		return streams
	}
	return 1
}

// withThreads returns the part of a limit, in thousandths of a CPU, that a program with these threads can use. 0 means unknown.
func withThreads(limit int64, threads int) int64 { return min(limit, 1000*int64(threads)) }

// flow returns one direction: the throughput at the receiver, and the retransmits of the sender.
func flow(sent, received *iperf3Sum, protocol string) *contract.Flow {
	if sent == nil || received == nil {
		return nil
	}
	flow := &contract.Flow{
		BitsPerSecond: int64(math.Round(received.BitsPerSecond)), SentBitsPerSecond: int64(math.Round(sent.BitsPerSecond)),
		ReceivedBytes: received.Bytes, SentBytes: sent.Bytes,
	}
	if protocol == TCP {
		flow.Retransmits = counted(sent.Retransmits)
		return flow
	}
	flow.Packets, flow.LostPackets, flow.OutOfOrderPackets = counted(received.Packets), counted(received.LostPackets), new(int64)
	if received.JitterMilliseconds != nil {
		flow.JitterNanoseconds = nanoseconds(*received.JitterMilliseconds)
	}
	return flow
}

// counted returns nil for -1, with which iperf3 reports an unknown value.
func counted(value *int64) *int64 {
	if value == nil || *value < 0 {
		return nil
	}
	return value
}

func nanoseconds(milliseconds float64) *int64 {
	value := int64(math.Round(min(max(milliseconds, 0), longest) * float64(time.Millisecond)))
	return &value
}
