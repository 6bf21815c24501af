package broker

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"
)

// keeping returns a target that keeps its connections, and its broker.
func keeping(t *testing.T) (*Target, *loop) {
	t.Helper()
	driver := &loop{diary: &diary{}, arrivals: map[string]func([]byte, time.Time){}}
	return &Target{Options: &Options{
		Driver: driver, Topic: "a", Pairs: 1, Role: Both, Content: pool(t, 100), Compression: "None", Encryption: "None", InFlight: 1,
		Messages: 50, DeliveryTimeout: time.Second, Tuning: Light, Keeps: true,
	}}, driver
}

func run(t *testing.T, target *Target, number int) *reported {
	t.Helper()
	report := &reported{}
	if err := target.Trial(context.Background(), report, number, false); err != nil {
		t.Fatal(err)
	}
	return report
}

func TestConnectionsAreKeptAcrossTrials(t *testing.T) {
	target, driver := keeping(t)
	for number := 1; number <= 3; number++ {
		exchange := run(t, target, number).trial.Exchange
		if exchange.Received != 50 || exchange.Connections != 2 || (exchange.Setup != nil) != (number == 1) {
			t.Errorf("trial %d: %+v", number, exchange)
		}
	}
	target.Close(context.Background())
	if wanted := []string{"connect", "publish", "close"}; !slices.Equal(driver.diary.events, wanted) {
		t.Errorf("%v", driver.diary.events)
	}
}

func TestMessagesOfEarlierTrialsAreNotCounted(t *testing.T) {
	target, driver := keeping(t)
	run(t, target, 1)
	old := bytes.Clone(target.Options.Content.Content(49))
	target.kept[0].senders[0].ledger.write(49, old)
	driver.arrivals["a/kept/0"](old, time.Now()) // between two trials
	if counts, _ := target.kept[0].senders[0].ledger.close(); counts.Duplicated != 0 {
		t.Errorf("an ended trial counts messages: %+v", counts)
	}
	driver.before = func() { driver.arrivals["a/kept/0"](old, time.Now()) }
	exchange := run(t, target, 2).trial.Exchange
	if exchange.Received != 50 || exchange.Duplicated+exchange.Errors+exchange.OutOfOrder != 0 {
		t.Errorf("%+v", exchange)
	}
}

func TestFailedTrialKeepsNoConnections(t *testing.T) {
	t.Parallel()
	target, driver := keeping(t)
	run(t, target, 1)
	driver.gone = true
	if failed := run(t, target, 2).trial; failed.Failure == nil || failed.Failure.Reason != "BrokerUnreachable" || failed.Exchange.Setup != nil {
		t.Errorf("%+v, %+v", failed.Failure, failed.Exchange)
	}
	driver.gone = false
	if exchange := run(t, target, 3).trial.Exchange; exchange.Received != 50 || exchange.Setup == nil {
		t.Errorf("%+v", exchange)
	}
}
