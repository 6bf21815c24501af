package link

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const timeout = time.Minute

// end is the test's end of a device: the device reads the packets that it sends.
type end int

// ends returns a device, and its other end.
func ends(t *testing.T) (*Device, end) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	// room for all packets of a test, however late it reads them
	if err := unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_SNDBUF, 200_000); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(unix.Close(pair[0]), unix.Close(pair[1])); err != nil {
			t.Error(err)
		}
	})
	return &Device{fd: pair[0]}, end(pair[1])
}

func (e end) send(t *testing.T, packet []byte) {
	t.Helper()
	for deadline := time.Now().Add(timeout); ; {
		_, err := unix.Write(int(e), packet)
		if err == nil {
			return
		}
		if !errors.Is(err, unix.EAGAIN) || time.Now().After(deadline) {
			t.Fatal(err)
		}
		e.poll(t, unix.POLLOUT)
	}
}

func (e end) receive(t *testing.T) []byte {
	t.Helper()
	e.poll(t, unix.POLLIN)
	packet := make([]byte, packetBytes)
	size, err := unix.Read(int(e), packet)
	if err != nil {
		t.Fatal(err)
	}
	return packet[:size]
}

func (e end) poll(t *testing.T, events int16) {
	t.Helper()
	polled := []unix.PollFd{{Fd: int32(e), Events: events}}
	for deadline := time.Now().Add(timeout); ; {
		if ready, err := unix.Poll(polled, int(timeout.Milliseconds())); ready == 1 {
			return
		} else if !errors.Is(err, unix.EINTR) || time.Now().After(deadline) {
			t.Fatalf("no packet in time: %v", err)
		}
	}
}

// pumped is a running pump between two ends.
type pumped struct {
	pump          *Pump
	first, second end
	stop          func()
}

func start(t *testing.T, up, down Path) *pumped {
	t.Helper()
	deviceA, first := ends(t)
	deviceB, second := ends(t)
	pump := NewPump(deviceA, deviceB, model(t, up), model(t, down))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- pump.Run(ctx) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return &pumped{pump: pump, first: first, second: second, stop: stop}
}

func numbered(number, size int) []byte {
	packet := make([]byte, size)
	binary.BigEndian.PutUint32(packet, uint32(number))
	return packet
}

func TestPumpDelaysEachDirectionSeparately(t *testing.T) {
	p := start(t, Path{Delay: 30 * ms}, Path{Delay: 5 * ms})
	for _, way := range []struct {
		from, to end
		delay    time.Duration
	}{{p.first, p.second, 30 * ms}, {p.second, p.first, 5 * ms}} {
		began := time.Now()
		way.from.send(t, []byte("packet"))
		if got := string(way.to.receive(t)); got != "packet" {
			t.Errorf("%q", got)
		}
		if took := time.Since(began); took < way.delay-ms/2 {
			t.Errorf("it took %v, not %v", took, way.delay)
		}
	}
}

func TestPumpKeepsOrderAndRate(t *testing.T) {
	const packets, size = 100, 1250
	p := start(t, Path{BitsPerSecond: 10_000_000}, Path{})
	began := time.Now()
	go func() {
		for number := range packets {
			p.first.send(t, numbered(number, size))
		}
	}()
	for number := range packets {
		packet := p.second.receive(t)
		if got := int(binary.BigEndian.Uint32(packet)); got != number || len(packet) != size {
			t.Fatalf("packet %d of %d bytes in place of packet %d", got, len(packet), number)
		}
	}
	if took, least := time.Since(began), packets*size*800*time.Nanosecond; took < least-ms/2 {
		t.Errorf("it took %v, less than %v", took, least)
	}
	p.stop()
	if up, down := p.pump.Counts(); up != (Count{Delivered: packets, Bytes: packets * size}) || down != (Count{}) {
		t.Errorf("%+v, %+v", up, down)
	}
}

func TestPumpLosesWhatItsModelLoses(t *testing.T) {
	const packets = 500
	path := Path{Loss: 0.3}
	same := model(t, path)
	p := start(t, path, Path{})
	lost := int64(0)
	for number := range packets {
		p.first.send(t, numbered(number, 100))
		if _, fate := same.Send(0, 100); fate == Lost {
			lost++
		} else if got := int(binary.BigEndian.Uint32(p.second.receive(t))); got != number {
			t.Fatalf("packet %d in place of %d", got, number)
		}
	}
	p.stop()
	if up, _ := p.pump.Counts(); up.Lost != lost || up.Delivered != packets-lost {
		t.Errorf("%+v, not %d lost", up, lost)
	}
}

func TestFlightKeepsOrderWhileItGrows(t *testing.T) {
	device, other := ends(t)
	w := way{to: device}
	for number := range 300 {
		w.fly(flying{due: time.Duration(number), buffer: numbered(number, 100), size: 100})
		if number == 50 { // later packets wrap around
			if delivered, err := w.deliver(9); delivered != 10 || err != nil {
				t.Fatal(delivered, err)
			}
		}
	}
	if delivered, err := w.deliver(time.Hour); delivered != 290 || err != nil {
		t.Fatal(delivered, err)
	}
	for number := range 300 {
		if got := int(binary.BigEndian.Uint32(other.receive(t))); got != number {
			t.Fatalf("packet %d in place of %d", got, number)
		}
	}
}

func TestPumpDropsWhatTheQueueCannotHold(t *testing.T) {
	const packets = 200
	p := start(t, Path{BitsPerSecond: 1_000_000, QueuePackets: 3}, Path{})
	for number := range packets {
		p.first.send(t, numbered(number, 1250)) // 10 ms each
	}
	p.second.receive(t)
	p.stop()
	if up, _ := p.pump.Counts(); up.Dropped == 0 || up.Lost != 0 {
		t.Errorf("%+v", up)
	}
}

// relay passes packets on after a delay, with as few wake-ups as possible. It shows how late this machine wakes a thread.
func relay(t *testing.T, delay time.Duration) (first, second end) {
	t.Helper()
	from, first := ends(t)
	to, second := ends(t)
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // nanoseconds
		var err error
		for more := true; more && err == nil; {
			more, err = relayed(from, to, delay)
		}
		ended <- err
	}()
	t.Cleanup(func() {
		if err := errors.Join(unix.Shutdown(int(first), unix.SHUT_WR), <-ended); err != nil {
			t.Error(err)
		}
	})
	return first, second
}

// relayed passes the next packet on. It returns false if there is none.
func relayed(from, to *Device, delay time.Duration) (bool, error) {
	polled := []unix.PollFd{{Fd: int32(from.fd), Events: unix.POLLIN}}
	if _, err := unix.Poll(polled, -1); errors.Is(err, unix.EINTR) {
		return true, nil
	} else if err != nil {
		return false, err
	}
	packet := make([]byte, packetBytes)
	size, err := from.read(packet)
	if err != nil || size == 0 {
		return false, err
	}
	if err := sleep(delay); err != nil {
		return false, err
	}
	return to.write(packet[:size])
}

func TestMeasuresDelaysOfSinglePackets(t *testing.T) {
	const packets, delay = 200, 20 * ms
	p := start(t, Path{Delay: delay}, Path{})
	first, second := relay(t, delay)
	late := func(from, to end) time.Duration {
		began := time.Now()
		from.send(t, numbered(0, 100))
		to.receive(t)
		return time.Since(began) - delay
	}
	var pumps, relays []time.Duration
	for range packets {
		pumps = append(pumps, late(p.first, p.second))
		relays = append(relays, late(first, second))
	}
	slices.Sort(pumps)
	slices.Sort(relays)
	if pump, relay := pumps[packets/2], relays[packets/2]; pump < -ms/2 || pump > relay+ms/2 {
		t.Errorf("the pump's median packet is %v late, and that of a thread that sleeps %v", pump, relay)
	}
}
