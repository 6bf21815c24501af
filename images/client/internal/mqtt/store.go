package mqtt

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// store keeps what the broker has not answered, in the order in which it was sent: what Paho's own stores do, with less for
// each message, and one thing more. It knows of answers what Paho's tokens do not: they complete on a new connection too,
// when a message is only sent again.
type store struct {
	acknowledged func(number uint64)

	mutex   sync.Mutex
	sending uint64 // number of the message that is handed over
	places  uint64
	packets map[string]kept
	resent  int64
}

// kept is a packet without an answer. One that took a message's place has the number of that.
type kept struct {
	place, number uint64
	message       bool
	packet        packets.ControlPacket
}

func newStore(acknowledged func(number uint64)) *store {
	return &store{acknowledged: acknowledged, packets: map[string]kept{}}
}

// expect gives the number of the message that is put next.
func (s *store) expect(number uint64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.sending = number
}

// Open has nothing to do in memory, nor has Close.
func (s *store) Open()  {}
func (s *store) Close() {}

// Reset forgets everything.
func (s *store) Reset() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	clear(s.packets)
}

// Put keeps a packet until it is answered. A message that has arrived is not kept: Paho has no use for it on a new connection.
func (s *store) Put(key string, packet packets.ControlPacket) {
	_, message := packet.(*packets.PublishPacket)
	if message && key[0] == 'i' {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	before := s.packets[key]
	s.places++
	one := kept{place: s.places, number: before.number, message: before.message, packet: packet}
	if message {
		one.number, one.message = s.sending, true
	}
	s.packets[key] = one
}

// Get gives a packet to be sent again.
func (s *store) Get(key string) packets.ControlPacket {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	one := s.packets[key]
	if _, message := one.packet.(*packets.PublishPacket); message {
		s.resent++
	}
	return one.packet
}

// All gives the keys in the order in which packets were put.
func (s *store) All() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.SortedFunc(maps.Keys(s.packets), func(a, b string) int { return cmp.Compare(s.packets[a].place, s.packets[b].place) })
}

// Del forgets a packet that was answered: PUBACK, or PUBCOMP after the PUBREL that took its place.
func (s *store) Del(key string) {
	s.mutex.Lock()
	one := s.packets[key]
	delete(s.packets, key)
	s.mutex.Unlock()
	if one.message && s.acknowledged != nil {
		s.acknowledged(one.number)
	}
}

func (s *store) countResent() int64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.resent
}
