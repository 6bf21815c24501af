package broker

import (
	"time"

	"tierbench.io/client/internal/beside"
	"tierbench.io/client/internal/contract"
)

// Role of this program's pairs.
type Role string

// Roles: both sides of each pair, the publisher of each and the subscriber that its messages come back to, or the
// subscriber that sends them back.
const (
	Both      Role = "Both"
	Publisher Role = "Publisher"
	Echo      Role = "Echo"
)

// Options of a series of trials.
type Options struct {
	contract.Series

	Driver       Driver
	Topic        string // what all topics begin with
	Pairs        int
	FirstPair    int
	Role         Role
	Content      []byte // of each message, but for its number
	Compression  string
	Encryption   string
	Key          []byte
	InFlight     int           // messages of a publisher under way at once: the pace of a closed loop, the window of an open one
	Interval     time.Duration // between messages of a publisher; 0 for a closed loop
	Messages     int64         // of each publisher, or
	Duration     time.Duration // of the load
	Patience     time.Duration // for messages under way
	Ready        time.Duration // for the broker, and for other parts
	Agent        *beside.Agent // nil without
	Barrier      string
	Part, Parts  int
	Acknowledges bool // whether the delivery has acknowledgements
	Warms        bool // whether the broker is slow at first
}
