package broker

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tierbench.io/client/internal/payload"
)

// stuck is a broker that accepts messages and delivers none.
type stuck struct{}

func (stuck) Connect(context.Context, string, Events) (Connection, error) { return stuckLink{}, nil }

type stuckLink struct{}

func (stuckLink) Subscribe(context.Context, string, func([]byte, time.Time)) error { return nil }
func (stuckLink) Prepare(context.Context, string, bool) error                      { return nil }
func (stuckLink) Confirm(context.Context) error                                    { return nil }
func (stuckLink) Connected() bool                                                  { return true }
func (stuckLink) Statistics() Statistics                                           { return Statistics{} }
func (stuckLink) Close()                                                           {}

func (stuckLink) Publish(string, uint64, []byte) error { return nil }

func pool(t *testing.T, size int) *payload.Pool {
	t.Helper()
	made, err := payload.New("Random", size, 1)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func paired(t *testing.T, options *Options) *pair {
	t.Helper()
	if options.Content == nil {
		options.Content = pool(t, 100)
	}
	options.Driver, options.Role, options.Compression, options.Encryption = stuck{}, Both, "None", "None"
	made, err := connect(context.Background(), options, options.FirstPair, "t1", 0, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestUnsentDueMessagesAreCounted(t *testing.T) {
	t.Parallel()
	const due, interval = 200, 5 * time.Millisecond
	made := paired(t, &Options{InFlight: 3, Interval: interval, Duration: due * interval, DeliveryTimeout: 2 * due * interval})
	if err := made.load(context.Background()); err != nil {
		t.Fatal(err)
	}
	counts, _ := made.senders[0].ledger.close()
	if counts.Unsent == 0 || counts.Sent == 0 || counts.Sent+counts.Unsent != due {
		t.Errorf("%d sent, %d not sent of %d that were due", counts.Sent, counts.Unsent, due)
	}
}

func TestPairsBeginAtDifferentPhases(t *testing.T) {
	const interval = time.Second
	quarters := map[time.Duration]int{}
	for number := range 100 {
		one := &sender{pair: &pair{number: number, options: &Options{Interval: interval, Seed: 7}}}
		if again := (&sender{pair: &pair{number: number, options: one.options}}); again.phase() != one.phase() {
			t.Errorf("pair %d has another phase with the same seed", number)
		}
		quarters[one.phase()/(interval/4)]++
	}
	for quarter := range time.Duration(4) {
		if quarters[quarter] < 10 {
			t.Errorf("%d of 100 pairs begin in quarter %d", quarters[quarter], quarter)
		}
	}
	if phase := (&sender{pair: &pair{options: &Options{Interval: time.Hour, Duration: time.Second}}}).phase(); phase >= time.Second {
		t.Errorf("the phase leaves no message within the load: %v", phase)
	}
}

func TestEachMessageHasTheContentOfItsNumber(t *testing.T) {
	content := pool(t, 100)
	one := &pair{options: &Options{Content: content}}
	message := append([]byte(nil), content.Content(5)...)
	binary.BigEndian.PutUint64(message, 5)
	if !one.isValid(message) {
		t.Error("an unchanged message is refused")
	}
	binary.BigEndian.PutUint64(message, 6)
	if one.isValid(message) {
		t.Error("the content of another message is accepted")
	}
	if one.isValid(message[:99]) || one.isValid(nil) {
		t.Error("a shortened message is accepted")
	}
	if one.isValid(append(message, 0)) {
		t.Error("a lengthened message is accepted")
	}
	short := &pair{options: &Options{Content: pool(t, 2)}}
	if !short.isValid([]byte{1, 2}) || short.isValid([]byte{1}) || short.isValid(make([]byte, 9)) {
		t.Error("wrong result for a message that is only a number")
	}
}

func TestFolderMessagesAreNumberedAndSentInOrder(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"a": "message a", "b": "the message b is longer"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own, err := payload.FromFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	made := paired(t, &Options{Content: own, InFlight: 4}).senders[0]
	var sent []string
	made.publisher = listening{shows: func(message []byte) { sent = append(sent, string(message)) }}
	for range 3 {
		if err := made.send(0, 0); err != nil {
			t.Fatal(err)
		}
	}
	for number, want := range []string{"a", "age b is longer", "a"} {
		if got := sent[number]; binary.BigEndian.Uint64([]byte(got)) != uint64(number) || got[numberBytes:] != want {
			t.Errorf("message %d is %q", number, got)
		}
		if !made.isValid([]byte(sent[number])) {
			t.Errorf("message %d is refused", number)
		}
	}
	if made.plain != 9+23+9 || made.encoded != made.plain {
		t.Errorf("%d bytes, %d encoded", made.plain, made.encoded)
	}
	if made.isValid([]byte(sent[0][:numberBytes])) {
		t.Error("a number without content is accepted")
	}
}

// listening is a connection that reports each published message.
type listening struct {
	stuckLink
	shows func(message []byte)
}

func (l listening) Publish(_ string, _ uint64, message []byte) error {
	l.shows(message)
	return nil
}
