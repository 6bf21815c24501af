package broker

import (
	"fmt"
	"time"

	"tierbench.io/client/internal/agentclient"
	"tierbench.io/client/internal/payload"
)

// Role is the role of this program's pairs.
type Role string

// Roles: both sides of each pair, only the publishers (which receive the returned messages), only the subscribers that return
// messages, or publishers without subscribers.
const (
	Both      Role = "Both"
	Publisher Role = "Publisher"
	Echo      Role = "Echo"
	Alone     Role = "Alone"
)

// Tunings. Light is for short paths: one CPU, so that no thread has to be woken. Heavy is for high rates.
const (
	Light = "Light"
	Heavy = "Heavy"
)

// Options are the options of trials with one broker.
type Options struct {
	Driver          Driver
	Messenger       Messenger // of publishers that connect for each message; nil: they keep their connection
	Topic           string    // prefix of all topics
	Pairs           int
	FirstPair       int
	Publishers      int  // of each pair; 0: one
	Subscribers     int  // of each pair, at most 64; 0: one
	Shared          bool // each message is for one of the subscribers
	Role            Role
	Content         *payload.Pool // of the messages, without their numbers
	Seed            uint64        // of the phases at which pairs begin
	Compression     string
	Encryption      string
	Key             []byte
	InFlight        int                // messages of a publisher in flight: the pace of a closed loop, the window of an open one
	Unacknowledged  int                // unacknowledged messages of a publisher: its pace, if not 0
	Interval        time.Duration      // between messages of a publisher; 0 for a closed loop
	Messages        int64              // of each publisher, or
	Duration        time.Duration      // of the load
	DeliveryTimeout time.Duration      // for messages in flight
	Ready           time.Duration      // for the broker, and for other parts
	Agent           *agentclient.Agent // nil: none
	Barrier         string
	Part, Parts     int
	Acknowledges    bool // whether the delivery has acknowledgements
	Tuning          string
	OneWay          bool // the protocol has no subscribers: only acknowledgements come back
	Keeps           bool // connections from trial to trial
	WarmRounds      int  // at most, before the first trial
	Engine          Program
}

// Program is an engine that runs as a separate program.
type Program interface {
	CPU() time.Duration // that it has used so far
	Processors() int    // that it can use at once
}

// topic returns the topic of a pair's messages. Kept connections keep their topic.
func (o *Options) topic(trial string, number int) string {
	if o.Keeps {
		trial = "kept"
	}
	return fmt.Sprintf("%s/%s/%d", o.Topic, trial, number)
}

func (o *Options) publishers() int { return max(o.Publishers, 1) }

// audience returns who receives the messages of a publisher.
func (o *Options) audience() audience {
	if o.Role == Alone {
		return audience{}
	}
	return audience{max(o.Subscribers, 1), o.Shared}
}

func (o *Options) codec() (*payload.Codec, error) {
	return payload.NewCodec(o.Compression, o.Encryption, o.Key)
}
