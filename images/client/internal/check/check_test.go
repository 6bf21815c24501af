package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tierbench.io/client/internal/contract"
)

const groupRange = "/proc/sys/net/ipv4/ping_group_range"

// answering starts a peer that answers, and returns its address.
func answering(t *testing.T) string {
	t.Helper()
	streams, packets := both(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- answer(ctx, streams, packets) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return streams.Addr().String()
}

// both listens at a port that is free for TCP and for UDP.
func both(t *testing.T) (net.Listener, net.PacketConn) {
	t.Helper()
	for {
		streams, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		packets, err := net.ListenPacket("udp", streams.Addr().String())
		if err == nil {
			return streams, packets
		}
		streams.Close()
	}
}

// silent returns an address where connections wait, and packets are lost.
func silent(t *testing.T) string {
	t.Helper()
	streams, packets := both(t)
	t.Cleanup(func() { streams.Close(); packets.Close() })
	return streams.Addr().String()
}

// closed returns an address where nothing listens.
func closed(t *testing.T) string {
	t.Helper()
	streams, packets := both(t)
	streams.Close()
	packets.Close()
	return streams.Addr().String()
}

func options(peers ...Peer) Options {
	return Options{Peers: peers, Each: 10 * time.Second, Timeout: 20 * time.Second, Now: time.Now}
}

func briefly(peers ...Peer) Options {
	asked := options(peers...)
	asked.Each, asked.Timeout = 50*time.Millisecond, 100*time.Millisecond
	return asked
}

func TestOpenPathsToEachPeerAreReported(t *testing.T) {
	address := answering(t)
	found := Run(t.Context(), options(Peer{"one", address, address, address, "localhost"}, Peer{Name: "other", Service: address})).Peers
	if one := found[0]; one.TCP != ok || one.UDP != ok || one.Service != ok || one.NodePort != ok || one.DNS != ok || one.Name != "one" {
		t.Errorf("%+v", one)
	}
	if other := found[1]; other.Name != "other" || other.Service != ok || other.TCP+other.UDP+other.NodePort+other.DNS+other.Ping != "" {
		t.Errorf("%+v", other)
	}
}

func TestDroppedAndRefusedConnectionsAreDistinguished(t *testing.T) {
	dropped, refused := silent(t), closed(t)
	found := Run(t.Context(), briefly(Peer{"dropped", dropped, dropped, dropped, ""}, Peer{"refused", refused, refused, refused, "no.such.invalid"})).Peers
	if one := found[0]; one.TCP != "timed out" || one.UDP != "timed out" || one.Service != "timed out" || one.NodePort != "timed out" {
		t.Errorf("%+v", one)
	}
	if one := found[1]; one.TCP != "refused" || one.UDP != "refused" || one.Service != "refused" || one.NodePort != "refused" || one.DNS == ok || one.DNS == "" {
		t.Errorf("%+v", one)
	}
}

func TestAnotherProgramIsNotAPeer(t *testing.T) {
	streams, _ := both(t)
	defer streams.Close()
	go func() {
		for {
			socket, err := streams.Accept()
			if err != nil {
				return
			}
			_, _ = socket.Write(bytes.Repeat([]byte("x"), questionBytes))
			socket.Close()
		}
	}()
	if err := exchange(t.Context(), "tcp", streams.Addr().String()); !errors.Is(err, errOther) {
		t.Error(err)
	}
}

func TestPathThatOpensLateIsOpen(t *testing.T) {
	address := closed(t)
	var attempts int
	err := until(t.Context(), time.Second, func(ctx context.Context) error {
		attempts++
		if attempts == 3 {
			return nil
		}
		return exchange(ctx, "tcp", address)
	})
	if err != nil || attempts != 3 {
		t.Errorf("%v after %d attempts", err, attempts)
	}
}

func TestIdleConnectionsDoNotBlockAnExchange(t *testing.T) {
	address := answering(t)
	for range mostAtOnce - 1 {
		socket, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
	}
	if err := exchange(t.Context(), "tcp", address); err != nil {
		t.Error(err)
	}
}

func TestCollectorIsReachedOnlyByTLS(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	asked := options()
	asked.Collector = server.Listener.Addr().String()
	if found := Run(t.Context(), asked); found.Collector != ok {
		t.Errorf("%+v", found)
	}
	asked = briefly()
	asked.Collector = answering(t)
	if found := Run(t.Context(), asked); found.Collector == ok || found.Collector == "" {
		t.Errorf("%+v", found)
	}
}

func TestNodeClockIsReported(t *testing.T) {
	asked := options()
	asked.Now = func() time.Time { return time.Unix(0, 0) }
	if found := Run(t.Context(), asked); found.StartedAt != "1970-01-01T00:00:00Z" || found.EndedAt != found.StartedAt {
		t.Errorf("%+v", found)
	}
}

func TestDiskOfTheDirectoryIsReported(t *testing.T) {
	asked := options()
	asked.Directory = t.TempDir()
	found := Run(t.Context(), asked)
	if found.FreeBytes == nil || found.SizeBytes == nil || *found.FreeBytes < 0 || *found.FreeBytes > *found.SizeBytes {
		t.Errorf("%v of %v", found.FreeBytes, found.SizeBytes)
	}
	asked.Directory = "/no/such/folder"
	if found := Run(t.Context(), asked); found.FreeBytes != nil || found.SizeBytes != nil {
		t.Errorf("%+v", found)
	}
}

// TestPingNeedsAnAllowedGroup runs in its own network namespace, which has its own range of groups.
func TestPingNeedsAnAllowedGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can create a network namespace")
	}
	runtime.LockOSThread() // and never unlock it: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: "lo", Index: 1}}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(groupRange, []byte("1 0"), 0o644); err != nil {
		t.Fatal(err)
	}
	if found := Run(t.Context(), briefly(Peer{Name: "one", Address: "127.0.0.1:1"})); found.Ping != "not permitted" || found.Peers[0].Ping != "" {
		t.Errorf("%+v", found)
	}
	if err := os.WriteFile(groupRange, []byte("0 2147483647"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := mayPing(); err != nil {
		t.Error(err)
	}
	for _, host := range []string{"127.0.0.1", "::1"} {
		if err := echo(t.Context(), host); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestDeadlineIsReportedAsTimedOut(t *testing.T) {
	for _, err := range []error{context.DeadlineExceeded, os.ErrDeadlineExceeded} {
		if found := outcome(err); found != "timed out" {
			t.Error(found)
		}
	}
}

func TestLongestReportFitsInATerminationMessage(t *testing.T) {
	size, memory, long := int64(1<<62), false, strings.Repeat("x", 63)
	report := Report{
		Record: "Check", Contract: contract.Version, StartedAt: contract.FormatTime(time.Unix(0, 1)), EndedAt: contract.FormatTime(time.Unix(0, 1)),
		Architecture: "mips64le", Cgroup: 2, MemoryCgroup: &memory, FreeBytes: &size, SizeBytes: &size, Ping: "not permitted", Collector: errOther.Error(),
	}
	for range MostPeers {
		report.Peers = append(report.Peers, Reached{
			long, errOther.Error(), errOther.Error(), errOther.Error(), errOther.Error(), errOther.Error(), "name server failed",
		})
	}
	line, err := report.Line()
	if err != nil || len(line) > 4096 {
		t.Errorf("%d bytes, %v", len(line), err)
	}
	var again Report
	if err := json.Unmarshal(line, &again); err != nil || len(again.Peers) != MostPeers {
		t.Error(err)
	}
}
