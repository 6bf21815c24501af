package link

import (
	"math/rand/v2"
	"time"
)

// Fate is what happens to a packet.
type Fate int

// The fates of packets.
const (
	Delivered Fate = iota
	Dropped        // the queue was full
	Lost           // on the way
)

// Model says when packets arrive. All times are since any one instant, and never go back.
//
// A packet waits in the queue until those before it are sent, takes the time that its bits need, and is then on its way for the
// delay. Packets do not overtake one another, because a radio delivers in order: a late one makes those behind it late.
type Model struct {
	path     Path
	sender   sender
	random   *rand.Rand
	queue    queue
	latest   time.Duration // arrival of the last packet
	isBroken bool          // in a burst of losses
}

// NewModel returns a model of the path. The seed decides losses and jitter.
func NewModel(path Path, seed uint64) (*Model, error) {
	if err := path.Check(); err != nil {
		return nil, err
	}
	sender, err := newSender(path)
	if err != nil {
		return nil, err
	}
	if path.QueueBytes == 0 {
		path.QueueBytes = int(sender.mean() * path.QueueTime.Seconds() / 8)
	}
	return &Model{path: path, sender: sender, random: rand.New(rand.NewPCG(seed, 0))}, nil
}

// Send returns when a packet of this size arrives that enters the link now.
func (m *Model) Send(now time.Duration, size int) (time.Duration, Fate) {
	m.queue.leave(now)
	if m.isFull(size) {
		return 0, Dropped
	}
	sent := m.sender.send(now, size)
	if sent > now {
		m.queue.join(waiting{until: sent, size: size})
	}
	if m.loses() {
		return 0, Lost
	}
	m.latest = max(m.latest, sent+m.delay())
	return m.latest, Delivered
}

// isFull reports whether a packet finds no room. An empty queue takes a packet of any size.
func (m *Model) isFull(size int) bool {
	packets, bytes := m.queue.packets(), m.queue.bytes
	return packets > 0 && (m.path.QueuePackets > 0 && packets >= m.path.QueuePackets ||
		m.path.QueueBytes > 0 && bytes+size > m.path.QueueBytes)
}

// loses decides about one packet. Bursts are those of Gilbert's model: its mean loss is the declared one.
func (m *Model) loses() bool {
	loss, burst := m.path.Loss, m.path.Burst
	if loss == 0 {
		return false
	}
	chance := m.random.Float64()
	switch {
	case burst == 0:
		return chance < loss
	case m.isBroken:
		m.isBroken = chance >= 1/burst
	default:
		m.isBroken = chance < loss/(1-loss)/burst
	}
	return m.isBroken
}

func (m *Model) delay() time.Duration {
	if m.path.Jitter == 0 {
		return m.path.Delay
	}
	return m.path.Delay + time.Duration((2*m.random.Float64()-1)*float64(m.path.Jitter))
}
