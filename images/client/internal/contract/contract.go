// Package contract is what the client prints: version 1 of the contract with the operator.
//
// contract.schema.json next to go.mod is generated from the operator's models, and the tests hold these types against it.
package contract

import (
	"strings"
	"unicode"
)

// Version is the version of the contract.
const Version = 1

const messageBytes = 1000 // of a failure; the contract allows 1024 characters

// Outcomes of a trial.
const (
	Completed = "Completed"
	Failed    = "Failed"
)

// Failure says why something ended without a result.
type Failure struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Case    int    `json:"case,omitempty"` // the case that failed, if several are measured
}

func (f *Failure) Error() string { return f.Reason + ": " + f.Message }

// Cut limits a message to what the contract allows, and removes control characters, because servers and proxies write parts of
// it. As JSON it takes at most twice as much. A kubelet keeps 4096 bytes of a seal.
func (f *Failure) Cut() *Failure {
	if f == nil {
		return nil
	}
	message := strings.Map(printable, f.Message)
	if len(message) > messageBytes {
		message = strings.ToValidUTF8(message[:messageBytes], "") + "…"
	}
	return &Failure{f.Reason, message, f.Case}
}

func printable(letter rune) rune {
	if unicode.IsControl(letter) || letter == '\u2028' || letter == '\u2029' {
		return ' '
	}
	return letter
}

// TrialStarted is printed when a trial begins.
type TrialStarted struct {
	Contract int    `json:"contract"`
	Record   string `json:"record"`
	Number   int    `json:"case,omitempty"`
	Trial    int    `json:"trial"`
	Warmup   bool   `json:"warmup"`
	Time     string `json:"time"`
}

// Trial is printed when a trial has ended.
type Trial struct {
	Contract            int            `json:"contract"`
	Record              string         `json:"record"`
	Case                int            `json:"case,omitempty"`
	Trial               int            `json:"trial"`
	Warmup              bool           `json:"warmup"`
	Outcome             string         `json:"outcome"`
	Failure             *Failure       `json:"failure,omitempty"`
	StartTime           string         `json:"startTime"`
	DurationNanoseconds int64          `json:"durationNanoseconds"`
	Client              ClientSample   `json:"client"`
	Server              *ServerSample  `json:"server,omitempty"`
	Transfer            *Transfer      `json:"transfer,omitempty"`
	Exchange            *Exchange      `json:"exchange,omitempty"`
	Network             *Network       `json:"network,omitempty"`
	Distributions       *Distributions `json:"distributions,omitempty"`
	PairShares          *PairShares    `json:"pairShares,omitempty"`
	Traces              []Trace        `json:"traces,omitempty"`
	TracesLeftOut       bool           `json:"tracesLeftOut,omitempty"`
}

// PairShares holds what each pair received, in the order of the pairs.
type PairShares struct {
	Received    []int64 `json:"received"`
	Nanoseconds []int64 `json:"nanoseconds"` // from the start of the load to its last message
}

// Sides are the sides of a trace.
const (
	ClientSide = "Client"
	ServerSide = "Server"
)

// Trace is TCP over time at the sender, as JSON, compressed with gzip, in base64.
type Trace struct {
	Side string `json:"side"`
	Data string `json:"data"`
}

// ClientSample is the cost of a trial for the client.
type ClientSample struct {
	CPUNanoseconds     int64     `json:"cpuNanoseconds"`
	CPULimitMillicores int64     `json:"cpuLimitMillicores,omitempty"`
	Tuning             string    `json:"tuning,omitempty"`
	Computer           *Computer `json:"computer,omitempty"`
	Link               *Link     `json:"link,omitempty"`
}

// Link is what a client measured of its imitated link before the first trial. A value is nil if it was not measured.
type Link struct {
	RoundTripNanoseconds  *int64 `json:"roundTripNanoseconds,omitempty"`
	UploadBitsPerSecond   *int64 `json:"uploadBitsPerSecond,omitempty"`
	DownloadBitsPerSecond *int64 `json:"downloadBitsPerSecond,omitempty"`
}

// Computer is the state of a computer during a trial. A value is nil or empty if the kernel does not report it.
type Computer struct {
	CPUFrequencyKilohertz     *int64 `json:"cpuFrequencyKilohertz,omitempty"`
	CPUMaxKilohertz           *int64 `json:"cpuMaxKilohertz,omitempty"`
	CPUGovernor               string `json:"cpuGovernor,omitempty"`
	PowerMode                 string `json:"powerMode,omitempty"`
	TemperatureMillidegrees   *int64 `json:"temperatureMillidegrees,omitempty"`
	ThermalThrottles          *int64 `json:"thermalThrottles,omitempty"`
	QuotaThrottledNanoseconds *int64 `json:"quotaThrottledNanoseconds,omitempty"`
	Interface                 string `json:"interface,omitempty"`
	MTUBytes                  *int64 `json:"mtuBytes,omitempty"`
	CongestionControl         string `json:"congestionControl,omitempty"`
}

// ServerSample is what the agent of the server measured. A field is nil if the kernel of the node does not report it.
type ServerSample struct {
	ResidentBeforePartsPerMillion *int64    `json:"residentBeforePartsPerMillion,omitempty"`
	ResidentAfterPartsPerMillion  *int64    `json:"residentAfterPartsPerMillion,omitempty"`
	DeviceReadBytes               *int64    `json:"deviceReadBytes,omitempty"`
	IOWaitPartsPerMillion         *int64    `json:"ioWaitPartsPerMillion,omitempty"`
	IOPressurePartsPerMillion     *int64    `json:"ioPressurePartsPerMillion,omitempty"`
	CPUPartsPerMillion            *int64    `json:"cpuPartsPerMillion,omitempty"`
	ProcessCPUNanoseconds         *int64    `json:"processCpuNanoseconds,omitempty"`
	TCPRetransmits                *int64    `json:"tcpRetransmits,omitempty"`
	TCPSegmentsSent               *int64    `json:"tcpSegmentsSent,omitempty"`
	RoundTripNanoseconds          *int64    `json:"roundTripNanoseconds,omitempty"`
	RoundTripMaxNanoseconds       *int64    `json:"roundTripMaxNanoseconds,omitempty"`
	CPULimitMillicores            *int64    `json:"cpuLimitMillicores,omitempty"`
	MemoryAvailableBytes          *int64    `json:"memoryAvailableBytes,omitempty"`
	Computer                      *Computer `json:"computer,omitempty"`
}

// Causes of a retry.
const (
	Stalled     = "Stalled"
	Truncated   = "Truncated"
	Reset       = "Reset"
	Refused     = "Refused"
	Unreachable = "Unreachable"
	ServerError = "ServerError"
	Corrupt     = "Corrupt"
)

// Directions of a transfer.
const (
	Download = "Download"
	Upload   = "Upload"
)

// Transfer holds the measurements of the downloads or uploads of a trial. A time is nil if it is not known.
type Transfer struct {
	Direction               string           `json:"direction,omitempty"`
	Bytes                   int64            `json:"bytes"`
	Downloads               int64            `json:"downloads"`
	Retries                 int64            `json:"retries"`
	RetryCauses             map[string]int64 `json:"retryCauses"`
	Errors                  int64            `json:"errors"`
	LookupNanoseconds       int64            `json:"lookupNanoseconds"`
	ConnectNanoseconds      *int64           `json:"connectNanoseconds,omitempty"`
	TLSNanoseconds          *int64           `json:"tlsNanoseconds,omitempty"`
	FirstByteNanoseconds    *int64           `json:"firstByteNanoseconds,omitempty"`
	LongestStallNanoseconds *int64           `json:"longestStallNanoseconds,omitempty"`
	DigestVerified          bool             `json:"digestVerified"`
	Copied                  *bool            `json:"copied,omitempty"`
	Cipher                  string           `json:"cipher,omitempty"`
}

// Distributions are the distributions within a trial.
type Distributions struct {
	DownloadDuration *Histogram `json:"downloadDuration,omitempty"`
	RoundTrip        *Histogram `json:"roundTrip,omitempty"`
	RoundTripActual  *Histogram `json:"roundTripActual,omitempty"`
	Acknowledge      *Histogram `json:"acknowledge,omitempty"`
	Ping             *Histogram `json:"ping,omitempty"`
	PingUnderLoad    *Histogram `json:"pingUnderLoad,omitempty"`
}

// Causes of the errors of an exchange. Corrupt is another one.
const (
	Disconnected = "Disconnected"
	TimedOut     = "TimedOut"
)

// Exchange holds the measurements of the publishers and subscribers of a trial. Received + Lost is Sent, multiplied by the
// subscribers of a topic unless they share its messages.
type Exchange struct {
	*Arrivals
	*Setup
	Pairs               int64            `json:"pairs"`
	Sent                int64            `json:"sent"`
	Acknowledged        int64            `json:"acknowledged"`
	Retried             int64            `json:"retried"`
	Reconnects          int64            `json:"reconnects"`
	Errors              int64            `json:"errors"`
	ErrorCauses         map[string]int64 `json:"errorCauses"`
	LateSends           int64            `json:"lateSends"`
	Unsent              int64            `json:"unsent"`
	Discarded           int64            `json:"discarded"`
	Steady              *bool            `json:"steady,omitempty"`
	Cipher              string           `json:"cipher,omitempty"`
	TLSHandshakes       int64            `json:"tlsHandshakes,omitempty"`
	ResumedHandshakes   int64            `json:"resumedHandshakes,omitempty"`
	Batches             int64            `json:"batches"`
	BatchBytes          int64            `json:"batchBytes"`
	SentBytes           int64            `json:"sentBytes"`
	AcknowledgedBytes   int64            `json:"acknowledgedBytes,omitempty"` // without subscribers
	EncodedBytes        int64            `json:"encodedBytes"`
	WireSentBytes       int64            `json:"wireSentBytes"`
	WireReceivedBytes   int64            `json:"wireReceivedBytes"`
	WireSentPackets     int64            `json:"wireSentPackets"`
	WireReceivedPackets int64            `json:"wireReceivedPackets"`
	Connections         int64            `json:"connections"`
	LoadBytes           int64            `json:"loadBytes"`
	LoadPackets         int64            `json:"loadPackets"`
	TCPRetransmits      int64            `json:"tcpRetransmits"`
	SessionNanoseconds  int64            `json:"sessionNanoseconds"`
	CompressNanoseconds int64            `json:"compressNanoseconds"`
	EncryptNanoseconds  int64            `json:"encryptNanoseconds"`
}

// Setup holds the costs of making connections. It is nil in a trial that uses the connections of an earlier trial.
type Setup struct {
	SetupBytes         int64 `json:"setupBytes"`
	SetupPackets       int64 `json:"setupPackets"`
	ConnectNanoseconds int64 `json:"connectNanoseconds"`
	TLSNanoseconds     int64 `json:"tlsNanoseconds"`
}

// Arrivals holds what subscribers measure. It is nil without subscribers.
type Arrivals struct {
	Received              int64 `json:"received"`
	Lost                  int64 `json:"lost"`
	AcknowledgedLost      int64 `json:"acknowledgedLost"`
	Duplicated            int64 `json:"duplicated"`
	OutOfOrder            int64 `json:"outOfOrder"`
	ReceivedBytes         int64 `json:"receivedBytes"`
	DecryptNanoseconds    int64 `json:"decryptNanoseconds"`
	DecompressNanoseconds int64 `json:"decompressNanoseconds"`
}

// Network holds the measurements of the network in a trial.
type Network struct {
	Upload           *Flow   `json:"upload,omitempty"`
	Download         *Flow   `json:"download,omitempty"`
	Ping             *Echoes `json:"ping,omitempty"`
	PingUnderLoad    *Echoes `json:"pingUnderLoad,omitempty"`
	StartNanoseconds *int64  `json:"startNanoseconds,omitempty"` // from the clients' common start
}

// Flow is the traffic in one direction, summed over the streams. A value is nil if the protocol does not have it, or iperf3 does
// not report it.
type Flow struct {
	BitsPerSecond     int64        `json:"bitsPerSecond"`
	SentBitsPerSecond int64        `json:"sentBitsPerSecond"`
	ReceivedBytes     int64        `json:"receivedBytes"`
	SentBytes         int64        `json:"sentBytes"`
	Retransmits       *int64       `json:"retransmits,omitempty"`
	Packets           *int64       `json:"packets,omitempty"`
	LostPackets       *int64       `json:"lostPackets,omitempty"`
	OutOfOrderPackets *int64       `json:"outOfOrderPackets,omitempty"`
	JitterNanoseconds *int64       `json:"jitterNanoseconds,omitempty"`
	TCP               *TCPActivity `json:"tcp,omitempty"`
}

// TCPActivity is the activity of TCP at the sender: the time in each congestion state, estimated from samples, and exact counts
// of events.
type TCPActivity struct {
	Samples               int64            `json:"samples"`
	StatesPartsPerMillion map[string]int64 `json:"statesPartsPerMillion"`
	Events                map[string]int64 `json:"events"`
}

// Echoes holds the measurements of ping. Times are nil if no request was answered.
type Echoes struct {
	Sent                         int64  `json:"sent"`
	Received                     int64  `json:"received"`
	Duplicated                   int64  `json:"duplicated"`
	MinNanoseconds               *int64 `json:"minNanoseconds,omitempty"`
	MeanNanoseconds              *int64 `json:"meanNanoseconds,omitempty"`
	MaxNanoseconds               *int64 `json:"maxNanoseconds,omitempty"`
	StandardDeviationNanoseconds *int64 `json:"standardDeviationNanoseconds,omitempty"`
}

// Engine is the program that made the load.
type Engine struct {
	Name         string `json:"name"`
	Version      string `json:"version"`
	Architecture string `json:"architecture"`
}

// Seal is the termination message. It says what the log must contain.
type Seal struct {
	Contract int      `json:"contract"`
	Trials   int      `json:"trials"`
	SHA256   string   `json:"sha256"`
	Failure  *Failure `json:"failure,omitempty"`
	Engine   Engine   `json:"engine"`
	Lines    string   `json:"lines,omitempty"` // the last Trial lines without traces, compressed by zlib, in base64
}
