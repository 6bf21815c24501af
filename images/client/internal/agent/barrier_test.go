package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tierbench.io/client/internal/agentclient"
	"tierbench.io/client/internal/agentclienttest"
	"tierbench.io/client/internal/computer"
	"tierbench.io/client/internal/contract"
)

// joinBarrier returns the agent's answer to a part that joins a barrier.
func joinBarrier(t *testing.T, agent *Agent, part, parts int) (answered map[string]any, status int) {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/barrier", strings.NewReader(fmt.Sprintf(`{"name":"t1","part":%d,"parts":%d}`, part, parts)))
	request.Header.Set("Authorization", "Bearer "+token)
	answer := httptest.NewRecorder()
	agent.Handler().ServeHTTP(answer, request)
	if err := json.Unmarshal(answer.Body.Bytes(), &answered); err != nil {
		t.Errorf("%s: %v", answer.Body, err)
	}
	return answered, answer.Code
}

func TestPartsWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, opened := &Agent{options: Options{Token: token}}, make(chan int, 3)
		join := func(part int) {
			if answered, status := joinBarrier(t, agent, part, 3); status != http.StatusOK || answered["open"] != true {
				t.Errorf("part %d: status %d, %v", part, status, answered)
			}
			opened <- part
		}
		go join(0)
		go join(1)
		synctest.Wait()
		if len(opened) != 0 {
			t.Errorf("part %d did not wait", <-opened)
		}
		join(2)
		<-opened
		<-opened
		join(1) // a restarted part joins again
	})
}

func TestBarrierNamesMissingPartsAfterItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, began := &Agent{options: Options{Token: token}}, time.Now()
		answered, status := joinBarrier(t, agent, 0, 3)
		if status != http.StatusAccepted || answered["open"] != false || fmt.Sprint(answered["missing"]) != "[1 2]" {
			t.Errorf("status %d, %v", status, answered)
		}
		if waited := time.Since(began); waited != waiting {
			t.Errorf("the answer came after %v", waited)
		}
	})
}

// TestTimeoutAtBarrierNamesMissingPart uses an agent that names the missing parts at once.
func TestTimeoutAtBarrierNamesMissingPart(t *testing.T) {
	url, pin := agentclienttest.Serve(t, http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		writer.WriteHeader(http.StatusAccepted)
		fmt.Fprint(writer, `{"open": false, "missing": [1]}`)
	}))
	err := agentclient.New(url, token, pin).Meet(t.Context(), "t1", 0, 2, 0)
	var failure *contract.Failure
	if !errors.As(err, &failure) || failure.Reason != "BarrierTimedOut" || !strings.Contains(failure.Message, "[1]") {
		t.Errorf("%v", err)
	}
}

func TestBarrierRefusesAnotherNumberOfParts(t *testing.T) {
	made, err := New(Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := made.barriers.join("t1", 0, 2); err != nil {
		t.Fatal(err)
	}
	url, pin := agentclienttest.Serve(t, made.Handler())
	err = agentclient.New(url, token, pin).Meet(t.Context(), "t1", 0, 3, timeout)
	var failure *contract.Failure
	if !errors.As(err, &failure) || failure.Reason != "BarrierMismatch" {
		t.Errorf("%v", err)
	}
}

func TestOldBarriersAreRemoved(t *testing.T) {
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

func TestServerProcessIsFoundByName(t *testing.T) {
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
		t.Error("a process that does not exist was found")
	}
}

// spin uses CPU time for a duration.
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

func TestBusiestOfSeveralServersIsReported(t *testing.T) {
	before := map[int]process{1: {spent: 10 * time.Second}, 2: {spent: time.Second}}
	after := map[int]process{1: {spent: 10*time.Second + 1}, 2: {spent: 2 * time.Second}, 3: {spent: time.Second / 2}}
	if pid, took, found := busiest(before, after); pid != 2 || took != time.Second || !found {
		t.Errorf("process %d took %v", pid, took)
	}
	if _, _, found := busiest(before, nil); found {
		t.Error("an ended process was found")
	}
}

func TestAgentReportsComputerAndLimitOfServer(t *testing.T) {
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
