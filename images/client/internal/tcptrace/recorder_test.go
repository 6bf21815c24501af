package tcptrace

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tierbench.io/client/internal/usage"
)

// pair is both ends of a connection.
type pair struct{ client, server net.Conn }

// connections to one server on loopback, and its port.
func connections(t *testing.T, count int) (pairs []pair, port uint16) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for range count {
		client, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		server, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close(); server.Close() })
		pairs = append(pairs, pair{client, server})
	}
	return pairs, uint16(listener.Addr().(*net.TCPAddr).Port)
}

// connected is a single one.
func connected(t *testing.T) (client, server net.Conn, port uint16) {
	t.Helper()
	pairs, port := connections(t, 1)
	return pairs[0].client, pairs[0].server, port
}

// send sends as fast as it goes, but for the pauses.
func send(t *testing.T, from, to net.Conn, during, pause time.Duration) {
	t.Helper()
	go func() { _, _ = io.Copy(io.Discard, to) }()
	chunk := make([]byte, 64<<10)
	for end := time.Now().Add(during); time.Now().Before(end); {
		if _, err := from.Write(chunk); err != nil {
			t.Fatal(err)
		}
		time.Sleep(pause)
	}
}

// TestTheSenderIsTracedAndNobodyElse has an idle connection to the same port, as iperf3's control connection is.
func TestTheSenderIsTracedAndNobodyElse(t *testing.T) {
	for side, ports := range map[string]func(uint16) Ports{
		"client": func(port uint16) Ports { return Ports{Remote: map[uint16]bool{port: true}} },
		"server": func(port uint16) Ports { return Ports{Local: map[uint16]bool{port: true}} },
	} {
		pairs, port := connections(t, 2)
		recorder := Start(ports(port), 5*time.Millisecond)
		if side == "client" {
			send(t, pairs[1].client, pairs[1].server, 200*time.Millisecond, 0)
		} else {
			send(t, pairs[1].server, pairs[1].client, 200*time.Millisecond, 0)
		}
		activity, trace := recorder.End(1)
		if activity == nil || activity.Samples < 2 || len(trace.Connections) != 1 {
			t.Fatalf("%s: %+v, %+v", side, activity, trace)
		}
		total := int64(0)
		for _, share := range activity.StatesPartsPerMillion {
			total += share
		}
		if total < 999_990 || total > 1_000_000 {
			t.Errorf("%s: the states add up to %d", side, total)
		}
		row := trace.Connections[0]
		last := len(row.Milliseconds) - 1
		if row.Port != int64(port) || row.CongestionWindowBytes[last] == 0 || row.RoundTripMicroseconds[last] == 0 || int64(last+1) != activity.Samples {
			t.Errorf("%s: %+v", side, row)
		}
		if row.DeliveryBitsPerSecond[last] == 0 {
			t.Errorf("%s: the idle connection was taken for the sender", side)
		}
	}
}

// TestALoadBeginsLongAfterItsConnection as iperf3's does, and whether or not the sender has something to send all the time:
// a busy machine may look late, but not so late that the one is taken for the other.
func TestALoadBeginsLongAfterItsConnection(t *testing.T) {
	const idle, loaded = 2 * time.Second, 600 * time.Millisecond
	for name, pause := range map[string]time.Duration{"always busy": 0, "mostly waiting for data": 20 * time.Millisecond} {
		client, server, port := connected(t)
		recorder := Start(Ports{Remote: map[uint16]bool{port: true}}, 5*time.Millisecond)
		if _, err := client.Write([]byte("cookie")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(idle)
		sending := time.Now()
		send(t, client, server, loaded, pause)
		recorder.End(1)
		began, known := recorder.Began()
		if late := began.Sub(sending); !known || late < -idle/2 || late > time.Since(sending) {
			t.Errorf("%s: %v after the first byte, known: %v", name, late, known)
		}
	}
}

func TestWhenALoadBeganIsToldToTheMicrosecondIfItCanBe(t *testing.T) {
	at := func(millisecond, busy time.Duration, acked uint64, unacked uint32) sample {
		info := unix.TCPInfo{Busy_time: uint64(busy.Microseconds()), Bytes_acked: acked, Unacked: unacked}
		return sample{millisecond * time.Millisecond, info}
	}
	ms := time.Millisecond
	for name, one := range map[string]struct {
		samples []sample
		began   time.Duration
	}{
		"seen at rest, with a cookie behind it": {[]sample{at(100, ms, 37, 0), at(200, ms, 37, 0), at(300, 31*ms, 9000, 6)}, 270 * ms},
		"under way when it was looked at":       {[]sample{at(100, ms, 37, 0), at(200, 51*ms, 37, 10), at(300, 151*ms, 9000, 6)}, 150 * ms},
		"first seen under load":                 {[]sample{at(100, 30*ms, 9000, 6), at(200, 130*ms, 90000, 6)}, 70 * ms},
		"short of data later":                   {[]sample{at(100, 0, 0, 0), at(200, 90*ms, 9000, 6), at(900, 95*ms, 9900, 0)}, 110 * ms},
		"a kernel that does not count":          {[]sample{at(100, 0, 37, 0), at(200, 0, 9000, 6), at(300, 0, 90000, 6)}, 200 * ms},
	} {
		watched := connection{}
		for _, sample := range one.samples {
			watched.add(sample)
		}
		if watched.began != one.began {
			t.Errorf("%s: %v, not %v", name, watched.began, one.began)
		}
	}
}

func TestWithoutALoadItHasNotBegun(t *testing.T) {
	client, _, port := connected(t)
	recorder := Start(Ports{Remote: map[uint16]bool{port: true}}, time.Millisecond)
	if _, err := client.Write([]byte("cookie")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	recorder.End(1)
	if began, known := recorder.Began(); known {
		t.Errorf("it began at %v", began)
	}
}

func TestATraceIsTextThatCanBeReadAgain(t *testing.T) {
	client, server, port := connected(t)
	recorder := Start(Ports{Remote: map[uint16]bool{port: true}}, 5*time.Millisecond)
	send(t, client, server, 200*time.Millisecond, 0)
	_, trace := recorder.End(1)
	unpacked, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(trace.Encode())))
	if err != nil {
		t.Fatal(err)
	}
	var again Trace
	if err := json.NewDecoder(unpacked).Decode(&again); err != nil {
		t.Fatal(err)
	}
	if len(again.Connections) != 1 || len(again.Connections[0].State) != len(trace.Connections[0].State) {
		t.Errorf("%+v", again)
	}
}

func TestALongTraceIsThinnedNotCut(t *testing.T) {
	alone(t)
	_, _, port := connected(t)
	recorder := Start(Ports{Remote: map[uint16]bool{port: true}}, time.Hour)
	for number := range 3 * mostSamples {
		if recorder.look(time.Duration(number) * time.Millisecond) {
			recorder.thin()
		}
	}
	_, trace := recorder.End(1)
	times := trace.Connections[0].Milliseconds
	if len(times) >= mostSamples || len(times) < mostSamples/2 || times[0] != 0 || times[len(times)-1] < 3*mostSamples-8 {
		t.Errorf("%d samples from %d to %d ms", len(times), times[0], times[len(times)-1])
	}
	if trace.IntervalMilliseconds <= time.Hour.Milliseconds() {
		t.Errorf("the interval is still %d ms", trace.IntervalMilliseconds)
	}
}

func TestWithoutConnectionsThereIsNoTrace(t *testing.T) {
	if activity, trace := Start(Ports{}, time.Millisecond).End(1); activity != nil || trace != nil {
		t.Errorf("%+v, %+v", activity, trace)
	}
}

// TestEveryLookSamplesEveryConnection looks, as a pod does, at a network namespace without others' sockets. It says what a look
// costs, and asks for no time: that is the machine's.
func TestEveryLookSamplesEveryConnection(t *testing.T) {
	alone(t)
	ports := Ports{Remote: map[uint16]bool{}}
	for range 8 {
		_, _, port := connected(t)
		ports.Remote[port] = true
	}
	recorder := Start(ports, time.Hour)
	const looks = 200
	before := usage.CPU()
	for number := range looks {
		recorder.look(time.Duration(number))
	}
	each := (usage.CPU() - before) / looks
	t.Logf("%v a sample: %.2f %% of a core at 100 ms", each, float64(each)/float64(time.Millisecond))
	if activity, _ := recorder.End(8); activity.Samples != 8*looks {
		t.Errorf("%d samples", activity.Samples)
	}
}

// alone moves this test's thread into a network namespace of its own; the thread ends with the test.
func alone(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("only root has network namespaces: %v", err)
	}
	loopback, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(loopback)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestEventsAreReadByTheirNames(t *testing.T) {
	text := "TcpExt: SyncookiesSent TCPFastRetrans TCPTimeouts\nTcpExt: 0 7 3\nIpExt: InNoRoutes\nIpExt: 5\n"
	found := parseEvents(text)
	if found["TCPFastRetrans"] != 7 || found["TCPTimeouts"] != 3 || found["InNoRoutes"] != 0 {
		t.Errorf("%v", found)
	}
}
