package agent

import (
	"context"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"tierbench.io/client/internal/beside"
	"tierbench.io/client/internal/besidetest"
	"tierbench.io/client/internal/computer"
	"tierbench.io/client/internal/contract"
)

// part of a client each, which all know one agent.
func parts(t *testing.T, options Options) func() *beside.Agent {
	t.Helper()
	made, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	url, pin := besidetest.Serve(t, made.Handler())
	return func() *beside.Agent { return beside.New(url, token, pin) }
}

func TestPartsWaitForOneAnother(t *testing.T) {
	part := parts(t, Options{Token: token})
	opened := make(chan int, 3)
	join := func(number int) {
		if err := part().Meet(context.Background(), "t1", number, 3, time.Minute); err != nil {
			t.Error(err)
		}
		opened <- number
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
	one := parts(t, Options{Token: token})()
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
	before := processes(comm)
	spin(t, 2*time.Millisecond)
	if _, spent, found := busiest(before, processes(comm)); !found || spent < 2*time.Millisecond {
		t.Errorf("%v of CPU after 2 ms of work", spent)
	}
	if len(processes("no such process")) != 0 || len(processes("")) != 0 {
		t.Error("a process that is not there was found")
	}
}

// spin takes so much CPU time.
func spin(t *testing.T, long time.Duration) {
	t.Helper()
	began, err := cpuClock(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for now := began; now-began < long; {
		if now, err = cpuClock(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOfSeveralServersTheBusiestCounts(t *testing.T) {
	before := map[int]process{1: {spent: 10 * time.Second}, 2: {spent: time.Second}}
	after := map[int]process{1: {spent: 10*time.Second + 1}, 2: {spent: 2 * time.Second}, 3: {spent: time.Second / 2}}
	if pid, took, found := busiest(before, after); pid != 2 || took != time.Second || !found {
		t.Errorf("process %d took %v", pid, took)
	}
	if _, _, found := busiest(before, nil); found {
		t.Error("one that has ended was found")
	}
}

func TestTheAgentTellsOfItsComputerAndTheServersLimit(t *testing.T) {
	name, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	agent, err := New(Options{Token: token, Process: strings.TrimSpace(string(name)), Interval: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(agent.Handler())
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	var begun map[string]*int64
	call(t, server.URL+"/v1/begin", token, `{}`, &begun)
	var sample contract.ServerSample
	call(t, server.URL+"/v1/end", token, "", &sample)
	if found := sample.Computer; found == nil || found.Interface != "lo" || found.MTUBytes == nil || found.CongestionControl == "" {
		t.Errorf("%+v", found)
	}
	if sample.CPULimitMillicores == nil || *sample.CPULimitMillicores != computer.Own().CPULimit() || sample.MemoryAvailableBytes == nil {
		t.Errorf("%+v", sample)
	}
}
