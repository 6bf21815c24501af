package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/contracttest"
	"tierbench.io/client/internal/porttest"
)

// iperf3 is a server on loopback.
type iperf3 struct {
	port    int
	process *exec.Cmd
}

func startIperf3(t *testing.T) *iperf3 {
	t.Helper()
	made := &iperf3{port: porttest.Free(t)}
	made.start(t)
	return made
}

func (s *iperf3) start(t *testing.T) {
	t.Helper()
	s.process = exec.Command("iperf3", "--server", "--bind", "127.0.0.1", "--port", fmt.Sprint(s.port))
	if err := s.process.Start(); err != nil {
		t.Fatalf("Debian's iperf3 is needed: %v", err)
	}
	t.Cleanup(func() { s.kill() })
	eventually(t, "iperf3 answers", s.answers)
}

func (s *iperf3) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

func (s *iperf3) answers() bool {
	conn, err := net.DialTimeout("tcp", s.address(), time.Second)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

func (s *iperf3) address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// arguments of `network` for it: a second of load, and a few echo requests.
func (s *iperf3) arguments(more ...string) []string {
	return append([]string{"network", "--server=" + s.address(), "--duration-seconds=1", "--ping-count=3", "--ping-interval-milliseconds=10"}, more...)
}

// transmitting starts `network` with a load that has begun when it returns; `ended` gives what it said.
func transmitting(t *testing.T, server *iperf3, more ...string) (client *exec.Cmd, ended func() (int, []contract.Trial, contract.Seal)) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	var out bytes.Buffer
	client = process(t, &out, append(server.arguments(more...), "--output=json", "--termination-log="+log)...)
	eventually(t, "the load has begun", func() bool { return ticks(t, server.process.Process.Pid) > 5 })
	return client, func() (int, []contract.Trial, contract.Seal) {
		code := exitCode(t, client)
		trials, seal := contracttest.Check(t, out.Bytes(), read(t, log))
		return code, trials, seal
	}
}

func TestEveryWayAndProtocolGivesItsFigures(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"TCP", "UDP"} {
		for _, direction := range []string{"Upload", "Download", "Both"} {
			t.Run(protocol+" "+direction, func(t *testing.T) {
				t.Parallel()
				server := startIperf3(t)
				code, trials, seal := sealed(t, server.arguments("--protocol="+protocol, "--direction="+direction, "--streams=2", "--kilobits-per-second=8000")...)
				if code != 0 || seal.Failure != nil || len(trials) != 1 || trials[0].Failure != nil {
					t.Fatalf("exit code %d, %+v, %+v", code, seal.Failure, trials)
				}
				seen := trials[0].Network
				if (seen.Upload != nil) != (direction != "Download") || (seen.Download != nil) != (direction != "Upload") {
					t.Fatalf("%+v", seen)
				}
				for _, flow := range []*contract.Flow{seen.Upload, seen.Download} {
					if flow == nil {
						continue
					}
					if flow.ReceivedBytes == 0 || flow.BitsPerSecond == 0 || (flow.Retransmits == nil) != (protocol == "UDP") || (flow.JitterNanoseconds == nil) != (protocol == "TCP") {
						t.Errorf("%+v", flow)
					}
					if protocol == "UDP" && (flow.BitsPerSecond < 1_000_000 || flow.BitsPerSecond > 8_500_000) { // a busy machine sends less
						t.Errorf("%d bit/s of 8 Mbit/s", flow.BitsPerSecond)
					}
				}
				if echoes := seen.Ping; echoes.Sent != 3 || echoes.Received != 3 || trials[0].Distributions.Ping.Count != 3 {
					t.Errorf("%+v", echoes)
				}
			})
		}
	}
}

func TestBothSidesAreTracedWhereTheySend(t *testing.T) {
	t.Parallel()
	for direction, sides := range map[string]string{"Upload": "Client", "Download": "Server", "Both": "Client Server"} {
		_, trials, _ := sealed(t, observed(t, "--direction="+direction, "--streams=2", "--trace-milliseconds=20")...)
		found := []string{}
		for _, trace := range trials[0].Traces {
			found = append(found, trace.Side)
		}
		if strings.Join(found, " ") != sides {
			t.Errorf("%s: traces of %v", direction, found)
		}
		for way, flow := range map[string]*contract.Flow{"Upload": trials[0].Network.Upload, "Download": trials[0].Network.Download} {
			if flow != nil && (flow.TCP == nil || flow.TCP.Samples < 5 || flow.TCP.StatesPartsPerMillion["Open"] == 0) {
				t.Errorf("%s: %s %+v", direction, way, flow.TCP)
			}
		}
	}
	_, trials, _ := sealed(t, observed(t, "--protocol=UDP", "--kilobits-per-second=1000", "--trace-milliseconds=20")...)
	if len(trials[0].Traces) != 0 || trials[0].Network.Upload.TCP != nil {
		t.Errorf("UDP: %+v", trials[0])
	}
}

func TestTheAgentTellsOfTheServersSide(t *testing.T) {
	t.Parallel()
	_, trials, _ := sealed(t, observed(t, "--direction=Download")...)
	trial := trials[0]
	if sample := trial.Server; sample == nil || sample.RoundTripNanoseconds == nil || sample.ProcessCPUNanoseconds == nil || *sample.ProcessCPUNanoseconds == 0 {
		t.Errorf("%+v", sample)
	}
	if trial.Client.CPUNanoseconds == 0 || trial.Client.CPUNanoseconds > 2*trial.DurationNanoseconds {
		t.Errorf("%d ns of CPU in %d ns", trial.Client.CPUNanoseconds, trial.DurationNanoseconds)
	}
}

// Every kernel allows reno to everybody.
func TestTheCongestionControlThatIsAskedForIsUsed(t *testing.T) {
	t.Parallel()
	_, trials, _ := sealed(t, observed(t, "--congestion-control=reno")...)
	if client, beside := trials[0].Client.Computer, trials[0].Server.Computer; client.CongestionControl != "reno" || beside.CongestionControl != "reno" {
		t.Errorf("%+v, %+v", client, beside)
	}
	_, trials, _ = sealed(t, startIperf3(t).arguments("--congestion-control=nosuch", "--trials=1-2")...)
	if failure := trials[1].Failure; failure == nil || failure.Reason != "CongestionControlNotAllowed" || !strings.Contains(failure.Message, "net.ipv4.tcp_allowed_congestion_control") {
		t.Errorf("%+v", failure)
	}
}

// TestClientsBeginTogether starts one long after the other; each has a server of its own, and both end together.
func TestClientsBeginTogether(t *testing.T) {
	t.Parallel()
	servers, flags := gated(t, 2)
	common := append(flags, "--barrier=b", "--parts=2", "--trials=1-2", "--output=json")
	var outs [2]bytes.Buffer
	var clients [2]*exec.Cmd
	for part := range clients {
		arguments := servers[part].arguments(append(common, fmt.Sprintf("--part=%d", part), fmt.Sprintf("--ping-count=%d", 1+100*part))...)
		clients[part] = process(t, &outs[part], append(arguments, "--termination-log="+filepath.Join(t.TempDir(), "log"))...)
	}
	var starts [2][2]time.Time
	for part, client := range clients {
		if code := exitCode(t, client); code != 0 {
			t.Fatalf("part %d: exit code %d", part, code)
		}
		for line := range bytes.Lines(outs[part].Bytes()) {
			var trial contract.Trial
			if err := json.Unmarshal(line, &trial); err != nil || trial.Record != "Trial" {
				continue
			}
			if after := trial.Network.StartNanoseconds; after == nil || *after > int64(time.Second) {
				t.Errorf("part %d: %+v", part, trial.Network)
			}
			starts[part][trial.Trial-1], _ = time.Parse(time.RFC3339Nano, trial.StartTime)
		}
	}
	for trial := range 2 {
		if apart := starts[0][trial].Sub(starts[1][trial]).Abs(); apart > 300*time.Millisecond || starts[0][trial].IsZero() {
			t.Errorf("trial %d: %v apart", trial+1, apart)
		}
	}
}

func TestABusyServerIsWaitedForAndThenAReason(t *testing.T) {
	t.Parallel()
	server := startIperf3(t)
	_, first := transmitting(t, server, "--duration-seconds=2")
	_, trials, _ := sealed(t, server.arguments("--ready-milliseconds=0")...)
	if failure := trials[0].Failure; trials[0].Outcome != contract.Failed || failure.Reason != "ServerBusy" {
		t.Errorf("%+v", failure)
	}
	_, trials, _ = sealed(t, server.arguments()...)
	if trials[0].Outcome != contract.Completed {
		t.Errorf("%+v", trials[0].Failure)
	}
	if code, trials, _ := first(); code != 0 || trials[0].Outcome != contract.Completed {
		t.Errorf("exit code %d, %+v", code, trials)
	}
}

func TestWhoDoesNotAnswerHasAReason(t *testing.T) {
	t.Parallel()
	for server, reason := range map[string]string{
		fmt.Sprintf("127.0.0.1:%d", porttest.Free(t)): "ConnectionRefused",
		"no-such-host.invalid:5201":                   "ServerUnreachable",
	} {
		code, trials, seal := sealed(t, "network", "--server="+server, "--ping-count=0", "--ready-milliseconds=0", "--trials=4-5")
		if code != 0 || seal.Failure != nil || len(trials) != 2 || trials[1].Trial != 5 || trials[1].Failure.Reason != reason {
			t.Errorf("%s: exit code %d, %+v, %+v", server, code, seal.Failure, trials)
		}
	}
}

func TestAServerThatEndsFailsTheTrialAndNotTheNext(t *testing.T) {
	t.Parallel()
	server := startIperf3(t)
	_, ended := transmitting(t, server, "--duration-seconds=2", "--trials=1-2")
	server.kill()
	server.start(t)
	code, trials, _ := ended()
	if code != 0 || len(trials) != 2 || trials[0].Failure == nil || trials[0].Failure.Reason != "ConnectionLost" || trials[1].Failure != nil {
		t.Errorf("exit code %d, %+v", code, trials)
	}
}

// TestBlockedUDP lets TCP through to the server, and no UDP.
func TestBlockedUDP(t *testing.T) {
	t.Parallel()
	server := startIperf3(t)
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { door.Close() })
	go forward(door, server.address())
	_, trials, _ := sealed(t, "network", "--server="+door.Addr().String(), "--protocol=UDP", "--kilobits-per-second=1000", "--duration-seconds=1", "--ping-count=0")
	if failure := trials[0].Failure; failure == nil || failure.Reason != "UDPBlocked" {
		t.Errorf("%+v", failure)
	}
}

func forward(door net.Listener, address string) {
	for {
		one, err := door.Accept()
		if err != nil {
			return
		}
		other, err := net.Dial("tcp", address)
		if err != nil {
			one.Close()
			continue
		}
		go func() { _, _ = io.Copy(one, other); one.Close() }()
		go func() { _, _ = io.Copy(other, one); other.Close() }()
	}
}

func TestATerminationEndsIperf3Too(t *testing.T) {
	t.Parallel()
	server := startIperf3(t)
	client, ended := transmitting(t, server, "--duration-seconds=60")
	tell(t, client, syscall.SIGTERM)
	told := time.Now()
	code, trials, seal := ended()
	if code != exitInterrupted || len(trials) != 0 || seal.Failure == nil || seal.Failure.Reason != "Interrupted" || time.Since(told) > soon {
		t.Errorf("exit code %d, %d trials, %+v, after %v", code, len(trials), seal.Failure, time.Since(told))
	}
}

func TestPingThatIsNotPermittedEndsTheSeriesWithTheWayOut(t *testing.T) {
	folder := t.TempDir()
	script := "#!/bin/sh\necho 'ping: socket: Operation not permitted' >&2\nexit 2\n"
	if err := os.WriteFile(filepath.Join(folder, "ping"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	code, trials, seal := sealed(t, "network", "--server=127.0.0.1:1")
	if code == 0 || len(trials) != 0 || seal.Failure.Reason != "PingNotPermitted" || !strings.Contains(seal.Failure.Message, "net.ipv4.ping_group_range") {
		t.Errorf("exit code %d, %+v", code, seal.Failure)
	}
}

func TestNetworkArgumentsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	for _, arguments := range [][]string{
		{"--server=here"}, {"--server=h:1", "--protocol=SCTP"}, {"--server=h:1", "--direction=Sideways"}, {"--server=h:1", "--protocol=UDP"},
		{"--server=h:1", "--protocol=UDP", "--kilobits-per-second=1", "--congestion-control=reno"},
		{"--server=h:1", "--streams=0"}, {"--server=h:1", "--duration-seconds=0"}, {"--server=h:1", "--ping-count=-1"}, {"--server=h:1", "--trials=0-1"},
		{"--server=h:1", "--parts=2"}, {"--server=h:1", "--part=1"},
	} {
		code, trials, seal := sealed(t, append([]string{"network"}, arguments...)...)
		if code == 0 || len(trials) != 0 || seal.Failure == nil || seal.Failure.Reason != "InvalidArguments" {
			t.Errorf("%v: exit code %d, %+v", arguments, code, seal.Failure)
		}
	}
}
