// Package contract is what the client prints: version 1 of the contract with the operator.
//
// contract.schema.json beside go.mod is generated from the operator's models, and the tests hold these types against it.
package contract

import "strings"

// Version of the contract.
const Version = 1

const messageBytes = 1000 // of a failure; the contract allows 1024 characters

// Outcomes of a trial.
const (
	Completed = "Completed"
	Failed    = "Failed"
)

// Failure says why something ended without what was asked for.
type Failure struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (f *Failure) Error() string { return f.Reason + ": " + f.Message }

// cut bounds what servers and proxies put into a message to what the contract allows.
func (f *Failure) cut() *Failure {
	if f == nil || len(f.Message) <= messageBytes {
		return f
	}
	return &Failure{f.Reason, strings.ToValidUTF8(f.Message[:messageBytes], "") + "…"}
}

// TrialStarted is printed when a trial begins.
type TrialStarted struct {
	Contract int    `json:"contract"`
	Record   string `json:"record"`
	Trial    int    `json:"trial"`
	Warmup   bool   `json:"warmup"`
	Time     string `json:"time"`
}

// Trial is printed when a trial has ended.
type Trial struct {
	Contract            int            `json:"contract"`
	Record              string         `json:"record"`
	Trial               int            `json:"trial"`
	Warmup              bool           `json:"warmup"`
	Outcome             string         `json:"outcome"`
	Failure             *Failure       `json:"failure,omitempty"`
	StartTime           string         `json:"startTime"`
	DurationNanoseconds int64          `json:"durationNanoseconds"`
	Client              ClientSample   `json:"client"`
	Server              *ServerSample  `json:"server,omitempty"`
	Transfer            *Transfer      `json:"transfer,omitempty"`
	Distributions       *Distributions `json:"distributions,omitempty"`
}

// ClientSample is what a trial cost the client.
type ClientSample struct {
	CPUNanoseconds int64 `json:"cpuNanoseconds"`
}

// ServerSample is what the agent beside the server saw; nil is what the node's kernel does not tell.
type ServerSample struct {
	ResidentBeforePartsPerMillion *int64 `json:"residentBeforePartsPerMillion,omitempty"`
	ResidentAfterPartsPerMillion  *int64 `json:"residentAfterPartsPerMillion,omitempty"`
	DeviceReadBytes               *int64 `json:"deviceReadBytes,omitempty"`
	IOWaitPartsPerMillion         *int64 `json:"ioWaitPartsPerMillion,omitempty"`
	IOPressurePartsPerMillion     *int64 `json:"ioPressurePartsPerMillion,omitempty"`
	CPUPartsPerMillion            *int64 `json:"cpuPartsPerMillion,omitempty"`
	TCPRetransmits                *int64 `json:"tcpRetransmits,omitempty"`
	TCPSegmentsSent               *int64 `json:"tcpSegmentsSent,omitempty"`
	RoundTripNanoseconds          *int64 `json:"roundTripNanoseconds,omitempty"`
	RoundTripMaximumNanoseconds   *int64 `json:"roundTripMaximumNanoseconds,omitempty"`
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

// Transfer is what the downloads of one trial did.
type Transfer struct {
	Bytes                   int64            `json:"bytes"`
	Downloads               int64            `json:"downloads"`
	Retries                 int64            `json:"retries"`
	RetryCauses             map[string]int64 `json:"retryCauses"`
	Errors                  int64            `json:"errors"`
	DNSNanoseconds          int64            `json:"dnsNanoseconds"`
	ConnectNanoseconds      int64            `json:"connectNanoseconds"`
	TLSNanoseconds          int64            `json:"tlsNanoseconds"`
	FirstByteNanoseconds    int64            `json:"firstByteNanoseconds"`
	LongestStallNanoseconds int64            `json:"longestStallNanoseconds"`
	DigestVerified          bool             `json:"digestVerified"`
}

// Distributions within a trial.
type Distributions struct {
	DownloadDuration *Histogram `json:"downloadDuration,omitempty"`
}

// Engine is the program that made the load.
type Engine struct {
	Name         string `json:"name"`
	Version      string `json:"version"`
	Architecture string `json:"architecture"`
}

// Seal is the termination message: what the log must hold.
type Seal struct {
	Contract int      `json:"contract"`
	Trials   int      `json:"trials"`
	SHA256   string   `json:"sha256"`
	Failure  *Failure `json:"failure,omitempty"`
	Engine   Engine   `json:"engine"`
}
