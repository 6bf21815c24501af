package mqtt

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// store keeps what the broker has not answered, in the order of sending, as Paho's own stores do, at a lower cost per message. It
// also knows whether an answer arrived. Paho's tokens also complete when a message is only sent again on a new connection.
type store struct {
	acknowledged func(number uint64)

	mutex   sync.Mutex
	sending uint64 // number of the message that is handed over
	places  uint64
	packets map[string]kept
	resent  int64
}

// kept is a packet without an answer. A packet that replaces a message has the number of the message.
type kept struct {
	place, number uint64
	message       bool
	packet        packets.ControlPacket
}

func newStore(acknowledged func(number uint64)) *store {
	return &store{acknowledged: acknowledged, packets: map[string]kept{}}
}

// expect sets the number of the next message.
func (s *store) expect(number uint64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.sending = number
}

// Open does nothing, because the store is in memory. Close does nothing either.
func (s *store) Open()  {}
func (s *store) Close() {}

// Reset forgets everything.
func (s *store) Reset() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	clear(s.packets)
}

// Put keeps a packet until it is answered. It does not keep received messages, because Paho does not need them on a new
// connection.
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

// Get returns a packet that is sent again.
func (s *store) Get(key string) packets.ControlPacket {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	one := s.packets[key]
	if _, message := one.packet.(*packets.PublishPacket); message {
		s.resent++
	}
	return one.packet
}

// All returns the keys in the order in which packets were put.
func (s *store) All() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.SortedFunc(maps.Keys(s.packets), func(a, b string) int { return cmp.Compare(s.packets[a].place, s.packets[b].place) })
}

// Del removes a packet that was answered: by PUBACK, or by PUBCOMP after the PUBREL that replaced it.
func (s *store) Del(key string) {
	s.mutex.Lock()
	one := s.packets[key]
	delete(s.packets, key)
	s.mutex.Unlock()
	if one.message {
		s.acknowledged(one.number)
	}
}

func (s *store) countResent() int64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.resent
}
