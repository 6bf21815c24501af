package mqtt

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"github.com/eclipse/paho.golang/packets"
)

// sentBy returns the identifiers of the packets that an outbox has written, negative for those marked as duplicates.
func sentBy(t *testing.T, written *bytes.Buffer) (identifiers []int) {
	t.Helper()
	for {
		read, err := packets.ReadPacket(written)
		if err == io.EOF {
			return identifiers
		}
		if err != nil {
			t.Fatal(err)
		}
		switch packet := read.Content.(type) {
		case *packets.Publish:
			identifier := int(packet.PacketID)
			if packet.Duplicate {
				identifier = -identifier
			}
			identifiers = append(identifiers, identifier)
		case *packets.Pubrel:
			identifiers = append(identifiers, 1000+int(packet.PacketID))
		}
	}
}

func postAll(t *testing.T, to *outbox, numbers ...uint64) {
	t.Helper()
	for _, number := range numbers {
		if err := to.post(number, &packets.Publish{Topic: "topic", QoS: 2}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOutboxKeepsTheReceiveMaximum(t *testing.T) {
	box, written := &outbox{pending: map[uint16]*letter{}}, &bytes.Buffer{}
	box.connect(written, 2, false)
	postAll(t, box, 10, 11, 12, 13)
	if sent := sentBy(t, written); !slices.Equal(sent, []int{1, 2}) {
		t.Errorf("%v is sent", sent)
	}
	if number, known := box.end(2); number != 11 || !known {
		t.Errorf("%d is answered", number)
	}
	if sent := sentBy(t, written); !slices.Equal(sent, []int{3}) {
		t.Errorf("%v is sent", sent)
	}
	for _, unknown := range []uint16{2, 4, 9} { // 4 is not sent yet
		if _, known := box.end(unknown); known {
			t.Errorf("%d is answered", unknown)
		}
	}
}

func TestOutboxResendsInOrder(t *testing.T) {
	box, first := &outbox{pending: map[uint16]*letter{}}, &bytes.Buffer{}
	box.connect(first, 10, false)
	postAll(t, box, 10, 11, 12)
	box.release(1)
	box.disconnect()
	postAll(t, box, 13)
	for resumed, wanted := range map[bool][]int{true: {1001, -2, -3, 4}, false: {1001, 2, 3, 4}} {
		again := &bytes.Buffer{}
		box.connect(again, 10, resumed)
		if sent := sentBy(t, again); !slices.Equal(sent[:3], wanted[:3]) || len(sent) != 4 {
			t.Errorf("resumed %v: %v is sent", resumed, sent)
		}
	}
	if resent := box.countResent(); resent != 2+3 {
		t.Errorf("%d sent again", resent)
	}
}

func TestOutboxIsBounded(t *testing.T) {
	box := &outbox{pending: map[uint16]*letter{}}
	for number := range uint64(mostIdentifiers) {
		postAll(t, box, number)
	}
	if err := box.post(0, &packets.Publish{QoS: 1}); err != errFull {
		t.Errorf("one more is accepted: %v", err)
	}
	box.connect(io.Discard, mostIdentifiers, false)
	box.end(7)
	if postAll(t, box, 1); box.pending[7] == nil {
		t.Error("the free identifier is not used")
	}
}
