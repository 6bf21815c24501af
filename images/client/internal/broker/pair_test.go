package broker

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"tierbench.io/client/internal/payload"
)

// stuck is a broker that takes messages and gives none back.
type stuck struct{}

func (stuck) Connect(context.Context, string, Events) (Connection, error) { return stuckLink{}, nil }

type stuckLink struct{}

func (stuckLink) Subscribe(context.Context, string, func([]byte, time.Time)) error { return nil }
func (stuckLink) Prepare(context.Context, string) error                            { return nil }
func (stuckLink) Stands() bool                                                     { return true }
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
	made, err := connect(context.Background(), options, options.FirstPair, "t1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestWhatWasDueAndNotSentIsOwed(t *testing.T) {
	const due = 200
	made := paired(t, &Options{InFlight: 3, Interval: time.Millisecond, Duration: due * time.Millisecond, Patience: 400 * time.Millisecond})
	if err := made.load(context.Background()); err != nil {
		t.Fatal(err)
	}
	counts, _ := made.ledger.close()
	if counts.Unsent == 0 || counts.Sent == 0 || counts.Sent+counts.Unsent != due {
		t.Errorf("%d sent, %d not sent of %d that were due", counts.Sent, counts.Unsent, due)
	}
}

func TestPairsBeginAtPhasesOfTheirOwn(t *testing.T) {
	const interval = time.Second
	quarters := map[time.Duration]int{}
	for number := range 100 {
		one := &pair{number: number, options: &Options{Interval: interval, Seed: 7}}
		if again := (&pair{number: number, options: one.options}); again.phase() != one.phase() {
			t.Errorf("pair %d has another phase with the same seed", number)
		}
		quarters[one.phase()/(interval/4)]++
	}
	for quarter := range time.Duration(4) {
		if quarters[quarter] < 10 {
			t.Errorf("%d of 100 pairs begin in quarter %d", quarters[quarter], quarter)
		}
	}
	if phase := (&pair{options: &Options{Interval: time.Hour, Duration: time.Second}}).phase(); phase >= time.Second {
		t.Errorf("no message within the load: %v", phase)
	}
}

func TestEachMessageHasTheContentOfItsNumber(t *testing.T) {
	content := pool(t, 100)
	one := &pair{options: &Options{Content: content}}
	message := append([]byte(nil), content.Content(5)...)
	binary.BigEndian.PutUint64(message, 5)
	if !one.isSound(message) {
		t.Error("a message as it was sent is refused")
	}
	binary.BigEndian.PutUint64(message, 6)
	if one.isSound(message) {
		t.Error("the content of another message is taken")
	}
	if one.isSound(message[:99]) || one.isSound(nil) {
		t.Error("a message that was cut is taken")
	}
	short := &pair{options: &Options{Content: pool(t, 2)}}
	if !short.isSound([]byte{1, 2}) || short.isSound([]byte{1}) {
		t.Error("a message of a number alone")
	}
}
