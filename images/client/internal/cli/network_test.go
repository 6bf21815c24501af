package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
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
	s.process = exec.Command("iperf3", "--server", "--forceflush", "--bind", "127.0.0.1", "--port", fmt.Sprint(s.port))
	out, err := s.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	begin(t, s.process, syscall.SIGKILL)
	t.Cleanup(func() { s.kill() })
	// Its output says when it listens. A connection that only probes makes iperf3 reset the next client's.
	for lines := bufio.NewScanner(out); ; {
		if !lines.Scan() {
			t.Fatalf("iperf3 ended before it listened: %v", lines.Err())
		}
		if strings.Contains(lines.Text(), "listening") {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
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

// arguments returns the arguments of a client of this server: a second of load, and a few echo requests.
func (s *iperf3) arguments(more ...string) []string {
	return append([]string{"Network", "server=" + s.address(), "durationSeconds=1", "ping.count=3", "ping.intervalMilliseconds=10"}, more...)
}

// hasLoad reports whether a load has begun: more bytes have arrived than iperf3 needs to negotiate.
func (s *iperf3) hasLoad() bool { return received(s.port) > 1_000_000 }

func TestEveryDirectionAndProtocolIsMeasured(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"TCP", "UDP"} {
		for _, direction := range []string{"Upload", "Download", "Bidirectional"} {
			t.Run(protocol+" "+direction, func(t *testing.T) {
				t.Parallel()
				server := startIperf3(t)
				code, trials, seal := sealed(t, server.arguments("protocol="+protocol, "direction="+direction, "streams=2", "kilobitsPerSecond=8000")...)
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
				}
				if echoes := seen.Ping; echoes.Sent != 3 || echoes.Received != 3 || trials[0].Distributions.Ping.Count != 3 {
					t.Errorf("%+v", echoes)
				}
			})
		}
	}
}

func TestMeasuresUDPRate(t *testing.T) {
	for _, direction := range []string{"Upload", "Download"} {
		_, trials, _ := sealed(t, startIperf3(t).arguments("protocol=UDP", "direction="+direction, "streams=2", "kilobitsPerSecond=8000")...)
		flow := trials[0].Network.Upload
		if direction == "Download" {
			flow = trials[0].Network.Download
		}
		if flow.BitsPerSecond < 7_500_000 || flow.BitsPerSecond > 8_500_000 {
			t.Errorf("%s: %d bit/s of 8 Mbit/s", direction, flow.BitsPerSecond)
		}
	}
}

// sampled returns a trial with the agent's sample. A client continues without it if the agent does not answer within seconds.
func sampled(t *testing.T, more ...string) contract.Trial {
	t.Helper()
	for range 3 {
		if _, trials, _ := sealed(t, observed(t, more...)...); len(trials) == 1 && trials[0].Server != nil {
			return trials[0]
		}
	}
	t.Fatal("the agent answered in no trial")
	return contract.Trial{}
}

func TestEachSideIsTracedIfItSends(t *testing.T) {
	t.Parallel()
	for direction, sides := range map[string]string{"Upload": "Client", "Download": "Server", "Bidirectional": "Client Server"} {
		t.Run(direction, func(t *testing.T) {
			t.Parallel()
			trial := sampled(t, "direction="+direction, "streams=2", "traceIntervalMilliseconds=20")
			found := []string{}
			for _, trace := range trial.Traces {
				found = append(found, trace.Side)
			}
			if strings.Join(found, " ") != sides {
				t.Errorf("traces of %v", found)
			}
			for way, flow := range map[string]*contract.Flow{"Upload": trial.Network.Upload, "Download": trial.Network.Download} {
				if flow != nil && (flow.TCP == nil || flow.TCP.Samples == 0 || len(flow.TCP.StatesPartsPerMillion) == 0) {
					t.Errorf("%s %+v", way, flow.TCP)
				}
			}
		})
	}
	t.Run("UDP", func(t *testing.T) {
		t.Parallel()
		_, trials, _ := sealed(t, observed(t, "protocol=UDP", "kilobitsPerSecond=1000", "traceIntervalMilliseconds=20")...)
		if len(trials[0].Traces) != 0 || trials[0].Network.Upload.TCP != nil {
			t.Errorf("%+v", trials[0])
		}
	})
}

func TestAgentReportsServerSamples(t *testing.T) {
	t.Parallel()
	_, trials, _ := sealed(t, observed(t, "direction=Download")...)
	trial := trials[0]
	if sample := trial.Server; sample == nil || sample.RoundTripNanoseconds == nil || sample.ProcessCPUNanoseconds == nil || *sample.ProcessCPUNanoseconds == 0 {
		t.Errorf("%+v", sample)
	}
	if trial.Client.CPUNanoseconds == 0 || trial.Client.CPUNanoseconds > 2*trial.DurationNanoseconds {
		t.Errorf("%d ns of CPU in %d ns", trial.Client.CPUNanoseconds, trial.DurationNanoseconds)
	}
}

// Every kernel allows reno to all processes.
func TestRequestedCongestionControlIsUsed(t *testing.T) {
	t.Parallel()
	_, trials, _ := sealed(t, observed(t, "congestionControl=reno")...)
	if len(trials) == 0 || trials[0].Client.Computer == nil || trials[0].Server == nil || trials[0].Server.Computer == nil {
		t.Fatalf("no trial reports the computers of client and server: %+v", trials)
	}
	if client, server := trials[0].Client.Computer, trials[0].Server.Computer; client.CongestionControl != "reno" || server.CongestionControl != "reno" {
		t.Errorf("%+v, %+v", client, server)
	}
	_, trials, _ = sealed(t, startIperf3(t).arguments("congestionControl=nosuch", "trials=1-2")...)
	if len(trials) != 2 {
		t.Fatalf("%+v", trials)
	}
	if failure := trials[1].Failure; failure == nil || failure.Reason != "CongestionControlNotAllowed" || !strings.Contains(failure.Message, "net.ipv4.tcp_allowed_congestion_control") {
		t.Errorf("%+v", failure)
	}
}

// measureTogether has two clients measure at once, each with its own server. One pings longer than the other. For each
// trial, it returns when each client started, and when the last client reached the barrier.
func measureTogether(t *testing.T) (starts [2][2]time.Time, reached [2]time.Time) {
	t.Helper()
	var mutex sync.Mutex
	arrivals := map[string]time.Time{} // the first, by barrier and part
	servers, flags := gated(t, 2, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
			body, _ := io.ReadAll(request.Body)
			mutex.Lock()
			if _, before := arrivals[string(body)]; !before {
				arrivals[string(body)] = time.Now()
			}
			mutex.Unlock()
			request.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(writer, request)
		})
	})
	var clients [2]*client
	for part := range clients {
		clients[part] = launch(t, servers[part].arguments(append(flags, "barrier=b", "parts=2", "trials=1-2",
			fmt.Sprintf("part=%d", part), fmt.Sprintf("ping.count=%d", 1+100*part))...)...)
	}
	for part, client := range clients {
		outcome := client.ended(t)
		if outcome.code != 0 {
			t.Fatalf("part %d: exit code %d", part, outcome.code)
		}
		for _, trial := range outcome.trials {
			if after := trial.Network.StartNanoseconds; after == nil || *after < 0 {
				t.Errorf("part %d: %+v", part, trial.Network)
			}
			starts[part][trial.Trial-1], _ = time.Parse(time.RFC3339Nano, trial.StartTime)
		}
	}
	for asked, at := range arrivals {
		for trial := range reached {
			if strings.Contains(asked, fmt.Sprintf(`"b-t%d"`, trial+1)) && at.After(reached[trial]) {
				reached[trial] = at
			}
		}
	}
	return starts, reached
}

func TestClientsStartAfterAllReachTheBarrier(t *testing.T) {
	t.Parallel()
	starts, reached := measureTogether(t)
	for part := range starts {
		for trial, at := range starts[part] {
			if reached[trial].IsZero() || at.Before(reached[trial]) {
				t.Errorf("trial %d: part %d started at %v, the last one arrived at %v", trial+1, part, at, reached[trial])
			}
		}
	}
}

func TestMeasuresTimeBetweenStartsOfClients(t *testing.T) {
	starts, _ := measureTogether(t)
	for trial := range 2 {
		if apart := starts[0][trial].Sub(starts[1][trial]).Abs(); apart > 300*time.Millisecond {
			t.Errorf("trial %d: %v apart", trial+1, apart)
		}
	}
}

// TestClientRetriesABusyServer has a client wait behind a proxy, which reports each connection.
func TestClientRetriesABusyServer(t *testing.T) {
	t.Parallel()
	server := startIperf3(t)
	first := launch(t, server.arguments("durationSeconds=600")...)
	eventually(t, "the load has begun", server.hasLoad)
	_, trials, _ := sealed(t, server.arguments("readyMilliseconds=0")...)
	if failure := trials[0].Failure; trials[0].Outcome != contract.Failed || failure.Reason != "ServerBusy" {
		t.Errorf("%+v", failure)
	}
	proxy, asked := forwarding(t, server)
	waiting := launch(t, "Network", "server="+proxy, "durationSeconds=1", "ping.count=0", "readyMilliseconds=60000")
	<-asked
	<-asked // for the second time, so that it was refused once
	sendSignal(t, first.Cmd, syscall.SIGTERM)
	if outcome := waiting.ended(t); outcome.trials[0].Outcome != contract.Completed {
		t.Errorf("%+v", outcome.trials[0].Failure)
	}
}

func TestUnreachableHostHasAReason(t *testing.T) {
	t.Parallel()
	for server, reason := range map[string]string{
		fmt.Sprintf("127.0.0.1:%d", porttest.Free(t)): "ConnectionRefused",
		"no-such-host.invalid:5201":                   "ServerUnreachable",
	} {
		code, trials, seal := sealed(t, "Network", "server="+server, "ping.count=0", "readyMilliseconds=0", "trials=4-5")
		if code != 0 || seal.Failure != nil || len(trials) != 2 || trials[1].Trial != 5 || trials[1].Failure.Reason != reason {
			t.Errorf("%s: exit code %d, %+v, %+v", server, code, seal.Failure, trials)
		}
	}
}

func TestStrikeEndedServerFailsOnlyItsTrial(t *testing.T) {
	t.Parallel()
	server := startIperf3(t)
	one := strike{
		loads: []load{{func(times int) []string {
			return server.arguments(fmt.Sprintf("durationSeconds=%d", 2*times), "trials=1-2")
		}, server.hasLoad}},
		trial: 1, freeze: func([]*client) *os.Process { return server.process.Process },
		shows: func() bool { return unread(t, server.port) > ackBytes },
		fault: func([]*client) {
			server.kill()
			server.start(t)
		},
	}
	outcome := one.run(t)[0]
	if outcome.code != 0 || len(outcome.trials) != 2 || outcome.trials[0].Failure == nil || outcome.trials[0].Failure.Reason != "ConnectionLost" || outcome.trials[1].Failure != nil {
		t.Errorf("exit code %d, %+v", outcome.code, outcome.trials)
	}
}

// TestBlockedUDPIsReported uses a proxy that forwards only TCP to the server.
func TestBlockedUDPIsReported(t *testing.T) {
	t.Parallel()
	proxy, _ := forwarding(t, startIperf3(t))
	_, trials, _ := sealed(t, "Network", "server="+proxy, "protocol=UDP", "kilobitsPerSecond=1000", "durationSeconds=1", "ping.count=0")
	if failure := trials[0].Failure; failure == nil || failure.Reason != "UDPBlocked" {
		t.Errorf("%+v", failure)
	}
}

// forwarding starts a proxy for TCP to a server, and reports each connection.
func forwarding(t *testing.T, server *iperf3) (address string, asked <-chan struct{}) {
	t.Helper()
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Close() })
	connections := make(chan struct{}, 1000)
	go func() {
		for {
			one, err := proxy.Accept()
			if err != nil {
				return
			}
			connections <- struct{}{}
			other, err := net.Dial("tcp", server.address())
			if err != nil {
				one.Close()
				continue
			}
			go func() { _, _ = io.Copy(one, other); one.Close() }()
			go func() { _, _ = io.Copy(other, one); other.Close() }()
		}
	}()
	return proxy.Addr().String(), connections
}

func TestTerminationEndsIperf3Too(t *testing.T) {
	t.Parallel()
	server := startIperf3(t)
	client := launch(t, server.arguments("durationSeconds=600")...)
	eventually(t, "the load has begun", server.hasLoad)
	terminates(t, client)
	eventually(t, "iperf3 has ended", func() bool { return received(server.port) == 0 })
}

func TestForbiddenPingEndsTheSeriesWithAHint(t *testing.T) {
	folder := t.TempDir()
	script := "#!/bin/sh\necho 'ping: socket: Operation not permitted' >&2\nexit 2\n"
	if err := os.WriteFile(filepath.Join(folder, "ping"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	code, trials, seal := sealed(t, "Network", "server=127.0.0.1:1")
	if code == 0 || len(trials) != 0 || seal.Failure.Reason != "PingNotPermitted" || !strings.Contains(seal.Failure.Message, "net.ipv4.ping_group_range") {
		t.Errorf("exit code %d, %+v", code, seal.Failure)
	}
}

func TestWrongNetworkArgumentsAreRefused(t *testing.T) {
	for _, arguments := range [][]string{
		{"server=here"}, {"server=h:1", "protocol=SCTP"}, {"server=h:1", "direction=Sideways"}, {"server=h:1", "protocol=UDP"},
		{"server=h:1", "protocol=UDP", "kilobitsPerSecond=1", "congestionControl=reno"},
		{"server=h:1", "streams=0"}, {"server=h:1", "durationSeconds=0"}, {"server=h:1", "ping.count=-1"}, {"server=h:1", "trials=0-1"},
		{"server=h:1", "parts=2"}, {"server=h:1", "part=1"},
	} {
		code, trials, seal := sealed(t, append([]string{"Network"}, arguments...)...)
		if code == 0 || len(trials) != 0 || seal.Failure == nil || seal.Failure.Reason != "InvalidArguments" {
			t.Errorf("%v: exit code %d, %+v", arguments, code, seal.Failure)
		}
	}
}
