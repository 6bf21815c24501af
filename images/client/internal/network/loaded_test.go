package network

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/porttest"
)

// reported keeps the trial that a target reports.
type reported struct{ trial contract.Trial }

func (r *reported) Started(int, bool, time.Time) error { return nil }

func (r *reported) Ended(trial contract.Trial) error {
	r.trial = trial
	return nil
}

// serve starts an iperf3 server on loopback.
func serve(t *testing.T) uint16 {
	t.Helper()
	port := porttest.Free(t)
	server := exec.Command("iperf3", "--server", "--bind", "127.0.0.1", "--port", fmt.Sprint(port))
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	return uint16(port)
}

func underLoad(port uint16, seconds int) *Options {
	return &Options{
		Host: "127.0.0.1", Port: port, Protocol: TCP, Direction: Upload, Streams: 1, Duration: time.Duration(seconds) * time.Second,
		Ready: time.Minute, Parts: 1,
		Ping: Ping{Host: "127.0.0.1", Count: 5, Interval: 100 * time.Millisecond, Size: 56, UnderLoad: true},
	}
}

func runTrial(t *testing.T, options *Options) contract.Trial {
	t.Helper()
	report := &reported{}
	if err := (&Target{Options: options}).Trial(t.Context(), report, 1, false); err != nil {
		t.Fatal(err)
	}
	return report.trial
}

const queueing = "TIERBENCH_TEST_QUEUE"

// inNamespace runs a test again, alone in its own network namespace. It returns false there.
func inNamespace(t *testing.T, value string) bool {
	t.Helper()
	if os.Getenv(queueing) == value {
		return false
	}
	if os.Getuid() != 0 {
		t.Skip("only root can create a network namespace")
	}
	name := "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
	command := exec.Command("unshare", "--net", os.Args[0], "-test.run="+name, "-test.v")
	command.Env = append(os.Environ(), queueing+"="+value)
	if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
	return true
}

// runTrialInTime repeats a trial while the machine is too slow to send all requests before the load ends.
func runTrialInTime(t *testing.T, options *Options) contract.Trial {
	t.Helper()
	trial := runTrial(t, options)
	for range 4 {
		if trial.Failure == nil || trial.Failure.Message != late {
			break
		}
		trial = runTrial(t, options)
	}
	return trial
}

// TestMeasuresLatencyUnderLoad uses a link of 10 Mbit/s, whose queue of 125 kB takes 100 ms to send.
func TestMeasuresLatencyUnderLoad(t *testing.T) {
	for _, given := range []struct{ protocol, direction string }{{TCP, Upload}, {TCP, Download}, {TCP, Bidirectional}, {UDP, Upload}} {
		name := given.protocol + given.direction
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if inNamespace(t, name) {
				return
			}
			for _, command := range []string{"ip link set lo mtu 1500 up", "tc qdisc add dev lo root tbf rate 10mbit burst 5k limit 125k"} {
				if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
					t.Fatalf("%s: %v %s", command, err, out)
				}
			}
			options := underLoad(serve(t), 6)
			options.Protocol, options.Direction = given.protocol, given.direction
			if given.protocol == UDP {
				options.BitsPerSecond = 12_000_000
			} else {
				options.Congestion = "cubic" // fills the queue
			}
			trial := runTrialInTime(t, options)
			idle, loaded := trial.Network.Ping, trial.Network.PingUnderLoad
			if trial.Outcome != contract.Completed || idle.Received != 5 || loaded == nil || loaded.Sent != 5 || loaded.Received == 0 {
				t.Fatalf("%s %+v, idle %+v, under load %+v", trial.Outcome, trial.Failure, idle, loaded)
			}
			if *loaded.MeanNanoseconds < 20_000_000 || *loaded.MeanNanoseconds < 5**idle.MeanNanoseconds {
				t.Errorf("idle %v, under load %v", time.Duration(*idle.MeanNanoseconds), time.Duration(*loaded.MeanNanoseconds))
			}
			if trial.Distributions.Ping.Count != 5 || trial.Distributions.PingUnderLoad.Count != loaded.Received {
				t.Errorf("%+v", trial.Distributions)
			}
		})
	}
}

func TestRequestsAfterTheLoadAreNotUnderLoad(t *testing.T) {
	t.Parallel()
	trial := runTrial(t, underLoad(serve(t), 1)) // less than a load takes to settle
	if trial.Network.PingUnderLoad != nil || trial.Outcome != contract.Failed || trial.Failure.Reason != pingFailed || trial.Failure.Message != late {
		t.Errorf("%+v, %+v", trial.Failure, trial.Network)
	}
	if trial.Network.Ping.Received != 5 || trial.Network.Upload.ReceivedBytes == 0 {
		t.Errorf("%+v: the measured values are missing", trial.Network)
	}
}

// replace replaces a program by a script. In it $REAL is the program, and $RAN a file that does not exist yet.
func replace(t *testing.T, program, script string) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	script = fmt.Sprintf("#!/bin/sh\nREAL=%s RAN=%s\n%s\n", path, filepath.Join(folder, "ran"), script)
	if err := os.WriteFile(filepath.Join(folder, program), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
}

// replaceSecondPing replaces ping under load by a script. The first ping is the one before the load.
func replaceSecondPing(t *testing.T, script string) {
	t.Helper()
	replace(t, "ping", `[ -e $RAN ] || { touch $RAN; exec $REAL "$@"; }`+"\n"+script)
}

func TestLossUnderLoadIsCounted(t *testing.T) {
	began := filepath.Join(t.TempDir(), "began")
	replaceSecondPing(t, "date +%s%N >"+began+`
echo "5 packets transmitted, 2 received, 60% packet loss, time 400ms"
echo "rtt min/avg/max/mdev = 10.000/20.000/30.000/1.000 ms"`)
	trial := runTrial(t, underLoad(serve(t), 6))
	if loaded := trial.Network.PingUnderLoad; trial.Failure != nil || loaded.Sent != 5 || loaded.Received != 2 || *loaded.MeanNanoseconds != 20_000_000 {
		t.Errorf("%+v, %+v", trial.Failure, loaded)
	}
	if idle := trial.Network.Ping; idle.Received != 5 {
		t.Errorf("%+v", idle)
	}
	if after := since(t, trial, began); after < 3*time.Second {
		t.Errorf("requests were sent %v after the load began, so TCP may still have been in slow start", after)
	}
}

// since returns the time from the start of a trial's load to the time in a file.
func since(t *testing.T, trial contract.Trial, path string) time.Duration {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	nanoseconds, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	started, err := time.Parse(time.RFC3339Nano, trial.StartTime)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(0, nanoseconds).Sub(started)
}

func TestPingUnderLoadBelongsToTheLoadThatRan(t *testing.T) {
	port := serve(t)
	replace(t, "iperf3", `[ -e $RAN ] && exec $REAL "$@"
touch $RAN
echo '{"start":{},"end":{},"error":"unable to connect to server: Connection refused"}'`)
	trial := runTrialInTime(t, underLoad(port, 6))
	if loaded := trial.Network.PingUnderLoad; trial.Failure != nil || loaded == nil || loaded.Received != 5 {
		t.Errorf("%+v, %+v", trial.Failure, loaded)
	}
}

func TestLateRequestsAreNotUnderLoad(t *testing.T) {
	replaceSecondPing(t, `echo "5 packets transmitted, 5 received, 0% packet loss, time 9000ms"`)
	trial := runTrial(t, underLoad(serve(t), 5))
	if trial.Failure == nil || trial.Failure.Message != late || trial.Network.PingUnderLoad != nil {
		t.Errorf("%+v, %+v", trial.Failure, trial.Network.PingUnderLoad)
	}
}

func TestPingThatFailsUnderLoadFailsTheTrial(t *testing.T) {
	replaceSecondPing(t, "echo 'ping: sendmsg: Network is unreachable' >&2; exit 2")
	trial := runTrial(t, underLoad(serve(t), 5))
	if failure := trial.Failure; failure == nil || failure.Reason != pingFailed || !strings.Contains(failure.Message, "unreachable") {
		t.Errorf("%+v", failure)
	}
	if trial.Network.Upload == nil || trial.Network.Ping == nil {
		t.Errorf("%+v: the measured values are missing", trial.Network)
	}
}

// TestPingEndsWithAFailedLoad has no server, so the load fails while the ping waits for it to settle.
func TestPingEndsWithAFailedLoad(t *testing.T) {
	t.Parallel()
	options := underLoad(uint16(porttest.Free(t)), 600)
	options.Ready = 0
	began := time.Now()
	trial := runTrial(t, options)
	if trial.Failure == nil || trial.Failure.Reason != refused || trial.Network.PingUnderLoad != nil || time.Since(began) > time.Minute {
		t.Errorf("%+v after %v", trial.Failure, time.Since(began))
	}
}
