package mqtt

import (
	"slices"
	"testing"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

func packet(kind byte) packets.ControlPacket { return packets.NewControlPacket(kind) }

func TestStoreReportsAcknowledgedMessages(t *testing.T) {
	var answered []uint64
	stored := newStore(func(number uint64) { answered = append(answered, number) })
	for number, key := range []string{"o.3", "o.1", "o.2"} {
		stored.expect(uint64(number) + 10)
		stored.Put(key, packet(packets.Publish))
	}
	stored.Put("o.7", packet(packets.Subscribe))
	stored.Put("o.1", packet(packets.Pubrel)) // QoS 2: the broker has it, and is to pass it on
	stored.Put("i.1", packet(packets.Publish))
	if keys := stored.All(); !slices.Equal(keys, []string{"o.3", "o.2", "o.7", "o.1"}) {
		t.Errorf("kept in the order %v", keys)
	}
	for _, key := range []string{"o.7", "o.1", "i.1", "o.3", "o.3"} {
		stored.Del(key)
	}
	if !slices.Equal(answered, []uint64{11, 10}) {
		t.Errorf("answered %v", answered)
	}
	if stored.Get("o.2"); stored.countResent() != 1 {
		t.Errorf("%d sent again", stored.countResent())
	}
	stored.Reset()
	if keys := stored.All(); len(keys) > 0 || stored.Get("o.2") != nil {
		t.Errorf("%v is left", keys)
	}
}
