package mqtt

import (
	"slices"
	"testing"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

func packet(kind byte) packets.ControlPacket { return packets.NewControlPacket(kind) }

func TestStoreReportsAcknowledgedMessages(t *testing.T) {
	var answered []uint64
	tried := newStore(func(number uint64) { answered = append(answered, number) })
	for number, key := range []string{"o.3", "o.1", "o.2"} {
		tried.expect(uint64(number) + 10)
		tried.Put(key, packet(packets.Publish))
	}
	tried.Put("o.7", packet(packets.Subscribe))
	tried.Put("o.1", packet(packets.Pubrel)) // QoS 2: the broker has it, and is to pass it on
	tried.Put("i.1", packet(packets.Publish))
	if keys := tried.All(); !slices.Equal(keys, []string{"o.3", "o.2", "o.7", "o.1"}) {
		t.Errorf("kept in the order %v", keys)
	}
	for _, key := range []string{"o.7", "o.1", "i.1", "o.3", "o.3"} {
		tried.Del(key)
	}
	if !slices.Equal(answered, []uint64{11, 10}) {
		t.Errorf("answered %v", answered)
	}
	if tried.Get("o.2"); tried.countResent() != 1 {
		t.Errorf("%d sent again", tried.countResent())
	}
	tried.Reset()
	if keys := tried.All(); len(keys) > 0 || tried.Get("o.2") != nil {
		t.Errorf("%v is left", keys)
	}
}
