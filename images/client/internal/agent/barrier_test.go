package agent

import (
	"context"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"tierbench.io/client/internal/beside"
	"tierbench.io/client/internal/contract"
)

func meetingPlace(t *testing.T) string {
	t.Helper()
	made, err := New(Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(made.Handler())
	t.Cleanup(server.Close)
	return server.URL
}

func TestPartsWaitForOneAnother(t *testing.T) {
	url := meetingPlace(t)
	opened := make(chan int, 3)
	join := func(part int) {
		if err := beside.New(url, token).Meet(context.Background(), "t1", part, 3, time.Minute); err != nil {
			t.Error(err)
		}
		opened <- part
	}
	go join(0)
	go join(1)
	select {
	case part := <-opened:
		t.Errorf("part %d did not wait", part)
	case <-time.After(100 * time.Millisecond):
	}
	join(2)
	<-opened
	<-opened
	join(1) // a part that was restarted joins again
}

func TestAPartThatNeverComesIsNamed(t *testing.T) {
	one := beside.New(meetingPlace(t), token)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if err := one.Meet(ctx, "t1", 0, 2, time.Minute); err == nil {
		t.Error("it met nobody")
	}
	err := one.Meet(context.Background(), "t1", 0, 3, time.Minute)
	if failure, is := err.(*contract.Failure); !is || failure.Reason != "BarrierMismatch" {
		t.Errorf("%v", err)
	}
}

func TestOldBarriersAreForgotten(t *testing.T) {
	var places barriers
	for number := range mostBarrier + 10 {
		if _, err := places.join(string(rune('a'+number%26))+time.Duration(number).String(), 0, 2); err != nil {
			t.Fatal(err)
		}
	}
	if len(places.known) != mostBarrier || len(places.order) != mostBarrier {
		t.Errorf("%d barriers are kept", len(places.known))
	}
}

func TestTheServersProcessIsFoundByItsName(t *testing.T) {
	name, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	comm := string(name[:len(name)-1])
	before := *processTime(comm)
	for started := time.Now(); time.Since(started) < 2*time.Millisecond; {
	}
	if spent := *processTime(comm) - before; spent < time.Millisecond || spent > time.Second {
		t.Errorf("%v of CPU after 2 ms of work", spent)
	}
	if processTime("no such process") != nil || processTime("") != nil {
		t.Error("a process that is not there was found")
	}
}
