package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/contracttest"
	"tierbench.io/client/internal/porttest"
)

// replacePing replaces ping by a script, in which $PING is the real program.
func replacePing(t *testing.T, script string) {
	t.Helper()
	real, err := exec.LookPath("ping")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "ping"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PING", real)
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
}

// TestPingsDoNotOverlapWithLoadsOfOtherClients lets one client's load last longer than the other's.
func TestPingsDoNotOverlapWithLoadsOfOtherClients(t *testing.T) {
	record := filepath.Join(t.TempDir(), "pings")
	replacePing(t, `echo "$(date +%s%N) $*" >> `+record+"\nexec $PING \"$@\"\n")
	servers, flags := gated(t, 2)
	common := append(flags, "barrier=b", "parts=2", "trials=1-2", "--output=json")
	var outs [2]bytes.Buffer
	var clients [2]*exec.Cmd
	var logs [2]string
	for part := range clients {
		logs[part] = filepath.Join(t.TempDir(), "log")
		clients[part] = process(t, &outs[part], append(servers[part].arguments(common...), "--termination-log="+logs[part],
			fmt.Sprintf("part=%d", part), fmt.Sprintf("ping.sizeBytes=%d", 60+part), fmt.Sprintf("durationSeconds=%d", 2-part))...)
	}
	var trials [2][]contract.Trial
	for part, client := range clients {
		if code := exitCode(t, client); code != 0 {
			t.Fatalf("part %d: exit code %d", part, code)
		}
		trials[part], _ = contracttest.Check(t, outs[part].Bytes(), read(t, logs[part]))
	}
	started, err := time.Parse(time.RFC3339Nano, trials[0][0].StartTime)
	if err != nil {
		t.Fatal(err)
	}
	ended := started.Add(time.Duration(trials[0][0].DurationNanoseconds))
	if pings := pingsOfSize(t, record, 61); len(pings) != 2 || pings[1].Before(ended) {
		t.Errorf("the other client's load ended at %v, these pings began: %v", ended, pings)
	}
}

func pingsOfSize(t *testing.T, record string, size int) []time.Time {
	t.Helper()
	found := []time.Time{}
	for line := range strings.Lines(string(read(t, record))) {
		digits, arguments, _ := strings.Cut(line, " ")
		since, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(arguments, fmt.Sprintf("-s %d ", size)) {
			found = append(found, time.Unix(0, since))
		}
	}
	return found
}

func TestSimultaneousClientsPingUnderTheirLoads(t *testing.T) {
	t.Parallel()
	servers, flags := gated(t, 2)
	var clients [2]*client
	for part := range clients {
		clients[part] = launch(t, servers[part].arguments(append(flags, "barrier=b", "parts=2", fmt.Sprintf("part=%d", part),
			"direction=Bidirectional", "durationSeconds=6", "ping.underLoad=true")...)...)
	}
	for part, client := range clients {
		trial := client.ended(t).trials[0]
		if found := trial.Network.PingUnderLoad; trial.Failure != nil || found == nil || found.Received != 3 || trial.Distributions.PingUnderLoad.Count != 3 {
			t.Errorf("part %d: %+v, %+v", part, trial.Failure, found)
		}
	}
}

func TestPingWithoutSummaryFailsOnlyItsTrial(t *testing.T) {
	before := filepath.Join(t.TempDir(), "before")
	echo := "case \"$*\" in *\"-c 1 \"*) exec $PING \"$@\";; esac\n" // before the first trial
	replacePing(t, echo+"[ -e "+before+" ] && exec $PING \"$@\"\ntouch "+before+"\necho 'ping: connect: Network is unreachable' >&2\nexit 2\n")
	code, trials, seal := sealed(t, startIperf3(t).arguments("trials=1-2")...)
	if code != 0 || seal.Failure != nil || len(trials) != 2 {
		t.Fatalf("exit code %d, %+v, %+v", code, seal.Failure, trials)
	}
	if failure := trials[0].Failure; failure == nil || failure.Reason != "PingFailed" || !strings.Contains(failure.Message, "unreachable") {
		t.Errorf("%+v", failure)
	}
	if trials[1].Outcome != contract.Completed || trials[1].Network.Ping == nil {
		t.Errorf("%+v", trials[1])
	}
}

func TestIPv6IsMeasuredLikeIPv4(t *testing.T) {
	t.Parallel()
	port := porttest.Free(t)
	server := exec.Command("iperf3", "--server", "--bind", "::1", "--port", fmt.Sprint(port), "--one-off")
	begin(t, server, syscall.SIGKILL)
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	_, trials, _ := sealed(t, "Network", fmt.Sprintf("server=[::1]:%d", port), "durationSeconds=1", "ping.count=2", "ping.intervalMilliseconds=10")
	if trial := trials[0]; trial.Failure != nil || trial.Network.Ping.Received != 2 || trial.Network.Upload.ReceivedBytes == 0 {
		t.Errorf("%+v, %+v", trial.Failure, trial.Network)
	}
}

func TestClientReportsItsComputerAndLimit(t *testing.T) {
	t.Parallel()
	_, trials, _ := sealed(t, observed(t, "streams=2")...)
	client, server := trials[0].Client, trials[0].Server
	if client.Computer == nil || client.Computer.Interface != "lo" || client.Computer.CongestionControl == "" || server.Computer.Interface != "lo" {
		t.Errorf("client %+v, server %+v", client.Computer, server.Computer)
	}
	if client.CPULimitMillicores < 1 || client.CPULimitMillicores > 2000 || *server.CPULimitMillicores != client.CPULimitMillicores {
		t.Errorf("client %d, server %d thousandths of a CPU", client.CPULimitMillicores, *server.CPULimitMillicores)
	}
}
