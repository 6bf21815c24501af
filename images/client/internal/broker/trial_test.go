package broker

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"tierbench.io/client/internal/agentclient"
	"tierbench.io/client/internal/agentclienttest"
	"tierbench.io/client/internal/contract"
)

const barrierTakes = 2 * time.Second

// diary records events in order.
type diary struct {
	mutex  sync.Mutex
	events []string
}

func (d *diary) write(event string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if len(d.events) == 0 || d.events[len(d.events)-1] != event {
		d.events = append(d.events, event)
	}
}

// loop is a broker that delivers each message at once.
type loop struct {
	diary    *diary
	mutex    sync.Mutex
	arrivals map[string]func([]byte, time.Time)
	before   func() // called before the first message is published; may be nil
	gone     bool
}

func (l *loop) Connect(context.Context, string, Events) (Connection, error) {
	l.diary.write("connect")
	return &loopLink{l}, nil
}

type loopLink struct{ of *loop }

func (l *loopLink) Subscribe(_ context.Context, topic string, arrived func([]byte, time.Time)) error {
	l.of.mutex.Lock()
	defer l.of.mutex.Unlock()
	l.of.arrivals[topic] = arrived
	return nil
}

func (l *loopLink) Publish(topic string, _ uint64, message []byte) error {
	l.of.diary.write("publish")
	if before := l.of.before; before != nil {
		l.of.before = nil
		before()
	}
	l.of.mutex.Lock()
	defer l.of.mutex.Unlock()
	l.of.arrivals[topic](message, time.Now())
	return nil
}

func (l *loopLink) Close()                                    { l.of.diary.write("close") }
func (*loopLink) Prepare(context.Context, string, bool) error { return nil }
func (*loopLink) Confirm(context.Context) error               { return nil }
func (l *loopLink) Connected() bool                           { return !l.of.gone }
func (*loopLink) Statistics() Statistics                      { return Statistics{Transport: Transport{Cipher: "cipher"}} }

// reported keeps the last trial.
type reported struct{ trial contract.Trial }

func (*reported) Started(int, bool, time.Time) error { return nil }

func (r *reported) Ended(trial contract.Trial) error {
	r.trial = trial
	return nil
}

// agentOf returns an agent that records its requests, and opens barriers slowly.
func agentOf(t *testing.T, kept *diary) *agentclient.Agent {
	t.Helper()
	url, pin := agentclienttest.Serve(t, http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		switch action := path.Base(request.URL.Path); action {
		case "barrier":
			time.Sleep(barrierTakes)
			fmt.Fprint(answer, `{"open": true}`)
		default:
			kept.write(action)
			fmt.Fprint(answer, `{}`)
		}
	}))
	return agentclient.New(url, "token", pin)
}

func TestOnlyTheLoadIsSampled(t *testing.T) {
	t.Parallel()
	kept := &diary{}
	report := &reported{}
	options := &Options{
		Driver: &loop{diary: kept, arrivals: map[string]func([]byte, time.Time){}}, Pairs: 2, Role: Both, Content: pool(t, 100),
		Compression: "None", Encryption: "None", InFlight: 1, Messages: 50, DeliveryTimeout: time.Minute, Tuning: Light,
		Agent: agentOf(t, kept), Parts: 2, Barrier: "b",
	}
	if err := (&Target{Options: options}).Trial(context.Background(), report, 1, false); err != nil {
		t.Fatal(err)
	}
	if wanted := []string{"connect", "begin", "publish", "end", "close"}; !slices.Equal(kept.events, wanted) {
		t.Errorf("%v", kept.events)
	}
	trial := report.trial
	if trial.Server == nil || trial.Client.Tuning != Light || trial.Client.Computer == nil || trial.Exchange.Cipher != "cipher" {
		t.Errorf("%+v", trial)
	}
	if waited := trial.Exchange.SessionNanoseconds - trial.DurationNanoseconds; waited >= barrierTakes.Nanoseconds() {
		t.Errorf("the session contains %d ns of waiting for other parts", waited)
	}
}
