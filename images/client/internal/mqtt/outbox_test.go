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

func TestOutboxSendsWhatTheBrokerHasRoomFor(t *testing.T) {
	tried, written := &outbox{pending: map[uint16]*letter{}}, &bytes.Buffer{}
	tried.connect(written, 2, false)
	postAll(t, tried, 10, 11, 12, 13)
	if sent := sentBy(t, written); !slices.Equal(sent, []int{1, 2}) {
		t.Errorf("%v is sent", sent)
	}
	if number, known := tried.end(2); number != 11 || !known {
		t.Errorf("%d is answered", number)
	}
	if sent := sentBy(t, written); !slices.Equal(sent, []int{3}) {
		t.Errorf("%v is sent", sent)
	}
	for _, unknown := range []uint16{2, 4, 9} { // 4 is not sent yet
		if _, known := tried.end(unknown); known {
			t.Errorf("%d is answered", unknown)
		}
	}
}

func TestOutboxSendsAgainInOrder(t *testing.T) {
	tried, first := &outbox{pending: map[uint16]*letter{}}, &bytes.Buffer{}
	tried.connect(first, 10, false)
	postAll(t, tried, 10, 11, 12)
	tried.release(1)
	tried.disconnect()
	postAll(t, tried, 13)
	for resumed, wanted := range map[bool][]int{true: {1001, -2, -3, 4}, false: {1001, 2, 3, 4}} {
		again := &bytes.Buffer{}
		tried.connect(again, 10, resumed)
		if sent := sentBy(t, again); !slices.Equal(sent[:3], wanted[:3]) || len(sent) != 4 {
			t.Errorf("resumed %v: %v is sent", resumed, sent)
		}
	}
	if resent := tried.countResent(); resent != 2+3 {
		t.Errorf("%d sent again", resent)
	}
}

func TestOutboxIsBounded(t *testing.T) {
	tried := &outbox{pending: map[uint16]*letter{}}
	for number := range uint64(mostIdentifiers) {
		postAll(t, tried, number)
	}
	if err := tried.post(0, &packets.Publish{QoS: 1}); err != errFull {
		t.Errorf("one more is taken: %v", err)
	}
	tried.connect(io.Discard, mostIdentifiers, false)
	tried.end(7)
	if postAll(t, tried, 1); tried.pending[7] == nil {
		t.Error("the free identifier is not used")
	}
}
