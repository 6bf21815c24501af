package mqtt

import (
	"sync"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
)

// store keeps what the broker has not answered, in the order in which it was sent. It knows of answers what Paho's tokens
// do not: they complete on a new connection too, when a message is only sent again.
type store struct {
	*paho.OrderedMemoryStore
	acknowledged func(number uint64)

	mutex   sync.Mutex
	sending uint64            // number of the message that is handed over
	numbers map[string]uint64 // of messages without an answer
	resent  int64
}

func newStore(acknowledged func(number uint64)) *store {
	return &store{OrderedMemoryStore: paho.NewOrderedMemoryStore(), acknowledged: acknowledged, numbers: map[string]uint64{}}
}

// expect gives the number of the message that is put next.
func (s *store) expect(number uint64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.sending = number
}

// Put keeps a packet until it is answered.
func (s *store) Put(key string, packet packets.ControlPacket) {
	if isSent(key, packet) {
		s.mutex.Lock()
		s.numbers[key] = s.sending
		s.mutex.Unlock()
	}
	s.OrderedMemoryStore.Put(key, packet)
}

// Get gives a packet to be sent again.
func (s *store) Get(key string) packets.ControlPacket {
	packet := s.OrderedMemoryStore.Get(key)
	if isSent(key, packet) {
		s.mutex.Lock()
		s.resent++
		s.mutex.Unlock()
	}
	return packet
}

// Del forgets a packet that was answered: PUBACK, or PUBCOMP after the PUBREL that took its place.
func (s *store) Del(key string) {
	s.OrderedMemoryStore.Del(key)
	s.mutex.Lock()
	number, known := s.numbers[key]
	delete(s.numbers, key)
	s.mutex.Unlock()
	if known && s.acknowledged != nil {
		s.acknowledged(number)
	}
}

func (s *store) countResent() int64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.resent
}

func isSent(key string, packet packets.ControlPacket) bool {
	_, is := packet.(*packets.PublishPacket)
	return is && key[0] == 'o'
}
