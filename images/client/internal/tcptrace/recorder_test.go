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

	"tierbench.io/client/internal/rusage"
	"tierbench.io/client/internal/sockdiag"
)

// pair is both ends of a connection.
type pair struct{ client, server net.Conn }

// connections opens connections to one server on loopback, and returns its port.
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

// connected opens a single connection.
func connected(t *testing.T) (client, server net.Conn, port uint16) {
	t.Helper()
	pairs, port := connections(t, 1)
	return pairs[0].client, pairs[0].server, port
}

// exchange sends some data that the other end reads, and then samples, repeatedly.
func exchange(t *testing.T, recorder *Recorder, from, to net.Conn) {
	t.Helper()
	chunk := make([]byte, 16<<10)
	for range looks {
		if _, err := from.Write(chunk); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(to, chunk); err != nil {
			t.Fatal(err)
		}
		recorder.look(time.Since(recorder.begun))
	}
}

// stream sends without a pause while it samples.
func stream(_ *testing.T, recorder *Recorder, from, to net.Conn) {
	stopped, chunk := make(chan struct{}), make([]byte, 64<<10)
	go func() { _, _ = io.Copy(io.Discard, to) }()
	go func() {
		defer close(stopped)
		for {
			if _, err := from.Write(chunk); err != nil {
				return
			}
		}
	}()
	for range looks {
		time.Sleep(tick)
		recorder.look(time.Since(recorder.begun))
	}
	from.Close()
	<-stopped
}

const (
	looks = 20
	never = time.Hour             // between samples by the recorder itself
	tick  = 10 * time.Millisecond // of the kernel's clock, at most
	idle  = 2 * time.Second       // before a load
)

// TestOnlyTheSenderIsTraced has an idle connection to the same port, like iperf3's control connection.
func TestOnlyTheSenderIsTraced(t *testing.T) {
	for side, ports := range map[string]func(uint16) Ports{
		"client": func(port uint16) Ports { return Ports{Remote: map[uint16]bool{port: true}} },
		"server": func(port uint16) Ports { return Ports{Local: map[uint16]bool{port: true}} },
	} {
		pairs, port := connections(t, 2)
		recorder := Start(ports(port), 1, never)
		if side == "client" {
			exchange(t, recorder, pairs[1].client, pairs[1].server)
		} else {
			exchange(t, recorder, pairs[1].server, pairs[1].client)
		}
		activity, trace := recorder.End()
		if activity == nil || activity.Samples != looks || len(trace.Connections) != 1 {
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

func TestRecorderSamplesByItself(t *testing.T) {
	_, _, port := connected(t)
	for interval, pause := time.Millisecond, 10*time.Millisecond; ; pause *= 2 {
		recorder := Start(Ports{Remote: map[uint16]bool{port: true}}, 1, interval)
		time.Sleep(pause)
		if activity, _ := recorder.End(); activity != nil && activity.Samples > 1 {
			return
		}
		if pause > time.Minute {
			t.Fatalf("fewer than two samples in %v", pause)
		}
	}
}

// TestLoadMayStartLongAfterItsConnection has a load that begins long after its connection, as iperf3's does. The sender
// is always busy, or mostly waits for data.
func TestLoadMayStartLongAfterItsConnection(t *testing.T) {
	for name, load := range map[string]func(*testing.T, *Recorder, net.Conn, net.Conn){"always busy": stream, "mostly waiting for data": exchange} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, server, port := connected(t)
			recorder := Start(Ports{Remote: map[uint16]bool{port: true}}, 1, never)
			cookie := []byte("cookie")
			if _, err := client.Write(cookie); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(server, cookie); err != nil {
				t.Fatal(err)
			}
			for rested := false; !rested; time.Sleep(tick) { // until its cookie was acknowledged
				recorder.look(time.Since(recorder.begun))
				for _, one := range recorder.seen {
					rested = one.resting.at > 0
				}
			}
			time.Sleep(idle)
			sending := time.Now()
			load(t, recorder, client, server)
			recorder.End()
			began, known := recorder.Began()
			if late := began.Sub(sending); !known || late < -idle/2 || late > time.Since(sending) {
				t.Errorf("%v after the first byte, known: %v", late, known)
			}
		})
	}
}

func TestStartOfLoadIsExactToTheMicrosecondIfPossible(t *testing.T) {
	at := func(millisecond, busy time.Duration, acked uint64, unacked uint32) sample {
		info := unix.TCPInfo{Busy_time: uint64(busy.Microseconds()), Bytes_acked: acked, Unacked: unacked}
		return sample{millisecond * time.Millisecond, info}
	}
	ms := time.Millisecond
	for name, one := range map[string]struct {
		samples []sample
		began   time.Duration
	}{
		"idle after a cookie":          {[]sample{at(100, ms, 37, 0), at(200, ms, 37, 0), at(300, 31*ms, 9000, 6)}, 270 * ms},
		"in flight at the sample":      {[]sample{at(100, ms, 37, 0), at(200, 51*ms, 37, 10), at(300, 151*ms, 9000, 6)}, 150 * ms},
		"first seen under load":        {[]sample{at(100, 30*ms, 9000, 6), at(200, 130*ms, 90000, 6)}, 70 * ms},
		"short of data later":          {[]sample{at(100, 0, 0, 0), at(200, 90*ms, 9000, 6), at(900, 95*ms, 9900, 0)}, 110 * ms},
		"a kernel that does not count": {[]sample{at(100, 0, 37, 0), at(200, 0, 9000, 6), at(300, 0, 90000, 6)}, 200 * ms},
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

func TestNoStartWithoutLoad(t *testing.T) {
	client, _, port := connected(t)
	recorder := Start(Ports{Remote: map[uint16]bool{port: true}}, 1, never)
	if _, err := client.Write([]byte("cookie")); err != nil {
		t.Fatal(err)
	}
	recorder.look(time.Since(recorder.begun))
	recorder.End()
	if began, known := recorder.Began(); known {
		t.Errorf("it began at %v", began)
	}
}

func TestTraceCanBeParsed(t *testing.T) {
	client, server, port := connected(t)
	recorder := Start(Ports{Remote: map[uint16]bool{port: true}}, 1, never)
	exchange(t, recorder, client, server)
	_, trace := recorder.End()
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

func TestLongTraceIsThinnedNotTruncated(t *testing.T) {
	alone(t)
	_, _, port := connected(t)
	recorder := newRecorder(Ports{Remote: map[uint16]bool{port: true}}, 1, never)
	close(recorder.done) // this test samples in its place
	for number := range 3 * mostSamples {
		if recorder.look(time.Duration(number) * time.Millisecond) {
			recorder.thin()
		}
	}
	_, trace := recorder.End()
	times := trace.Connections[0].Milliseconds
	if len(times) >= mostSamples || len(times) < mostSamples/2 || times[0] != 0 || times[len(times)-1] < 3*mostSamples-8 {
		t.Errorf("%d samples from %d to %d ms", len(times), times[0], times[len(times)-1])
	}
	if trace.IntervalMilliseconds <= never.Milliseconds() {
		t.Errorf("the interval is still %d ms", trace.IntervalMilliseconds)
	}
}

// TestTraceOfManyConnectionsIsThinned has as many connections as a trace can contain. Unthinned, they would not fit
// into a record.
func TestTraceOfManyConnectionsIsThinned(t *testing.T) {
	alone(t)
	_, port := connections(t, mostConnections)
	recorder := newRecorder(Ports{Remote: map[uint16]bool{port: true}}, mostConnections, time.Second)
	close(recorder.done) // this test samples in its place
	const samples = 900
	for number := range samples {
		recorder.look(time.Duration(number) * time.Second)
	}
	activity, trace := recorder.End()
	if activity.Samples != samples*mostConnections || len(trace.Connections) != mostConnections {
		t.Fatalf("%d samples, %d connections", activity.Samples, len(trace.Connections))
	}
	for _, one := range trace.Connections {
		if count := len(one.Milliseconds); count != samples/4 || one.Milliseconds[1] != trace.IntervalMilliseconds {
			t.Errorf("%d samples, the second one at %d ms, every %d ms", count, one.Milliseconds[1], trace.IntervalMilliseconds)
		}
	}
}

// TestEverySenderIsSearchedFor has two senders, one of which begins late, and an idle connection.
func TestEverySenderIsSearchedFor(t *testing.T) {
	pairs, port := connections(t, 3)
	recorder := newRecorder(Ports{Remote: map[uint16]bool{port: true}}, 2, never)
	chosen := 0 // each search chooses each connection
	recorder.watch = sockdiag.NewWatch(func(_, remote uint16) bool {
		if remote == port {
			chosen++
		}
		return remote == port
	})
	for number, pair := range pairs[:2] {
		recorder.look(0)
		if recorder.isLoaded() {
			t.Errorf("the search ends with %d of 2 senders", number)
		}
		exchange(t, recorder, pair.client, pair.server)
	}
	chosen = 0
	began := time.Now()
	for range looks {
		recorder.look(0)
	}
	if most := len(pairs) * (1 + int(time.Since(began)/time.Second)); chosen > most {
		t.Errorf("with all senders loaded, %d connections are chosen in %d looks, more than %d", chosen, looks, most)
	}
}

func TestTraceNeedsConnections(t *testing.T) {
	if activity, trace := Start(Ports{}, 1, time.Millisecond).End(); activity != nil || trace != nil {
		t.Errorf("%+v, %+v", activity, trace)
	}
}

// TestEverySampleCoversAllConnections samples in a network namespace without other sockets, as in a pod. It logs the
// cost of a sample, and does not limit it, because it depends on the machine.
func TestEverySampleCoversAllConnections(t *testing.T) {
	alone(t)
	ports := Ports{Remote: map[uint16]bool{}}
	for range 8 {
		_, _, port := connected(t)
		ports.Remote[port] = true
	}
	recorder := Start(ports, 8, never)
	before := rusage.CPU()
	for number := range looks {
		recorder.look(time.Duration(number))
	}
	each := (rusage.CPU() - before) / looks
	t.Logf("%v per sample: %.2f%% of a core at 100 ms", each, float64(each)/float64(time.Millisecond))
	if activity, _ := recorder.End(); activity.Samples != 8*looks {
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
