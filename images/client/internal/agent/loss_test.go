package agent

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"tierbench.io/client/internal/contract"
)

const (
	lossyPort  = "8080"
	lossyBytes = 64 << 20 // a thousand segments on loopback
)

// The test runs in its own network namespace: TCP counters start at zero, and its firewall affects no other process.
func TestLossyDownloadShowsRetransmitsAndRoundTrips(t *testing.T) {
	const inside = "TIERBENCH_TEST_IN_NAMESPACE"
	if os.Getenv(inside) != "" {
		lossyDownload(t)
		return
	}
	if os.Geteuid() != 0 {
		t.Fatal("only root can create a network namespace: run this test as root")
	}
	again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=60s")
	again.Env = append(os.Environ(), inside+"=yes")
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if output, err := again.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}

func lossyDownload(t *testing.T) {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		t.Fatal(err)
	}
	server, err := net.Listen("tcp", "127.0.0.1:"+lossyPort)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go http.Serve(server, http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		_, _ = writer.Write(make([]byte, lossyBytes))
	}))
	agent, err := New(Options{Directory: t.TempDir(), Token: token, Ports: map[uint16]bool{8080: true}, Interval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	agentServer := httptest.NewServer(agent.Handler())
	defer agentServer.Close()

	clean := sampleDownload(t, agentServer.URL)
	drop := "-A INPUT -p tcp --sport " + lossyPort + " -m statistic --mode random --probability 0.02 -j DROP"
	if output, err := exec.Command("iptables", strings.Fields(drop)...).CombinedOutput(); err != nil {
		t.Fatalf("iptables: %v %s", err, output)
	}
	began := time.Now()
	lossy := sampleDownload(t, agentServer.URL)
	took := time.Since(began)
	if lossy.RoundTripNanoseconds == nil || lossy.RoundTripMaxNanoseconds == nil {
		t.Fatal("no round trip was sampled")
	}
	t.Logf("retransmits %d without loss, %d of %d segments with 2%%; round trips %d ns, at most %d ns", *clean.TCPRetransmits,
		*lossy.TCPRetransmits, *lossy.TCPSegmentsSent, *lossy.RoundTripNanoseconds, *lossy.RoundTripMaxNanoseconds)
	if *lossy.TCPRetransmits <= *clean.TCPRetransmits {
		t.Errorf("%d retransmits with loss, %d without", *lossy.TCPRetransmits, *clean.TCPRetransmits)
	}
	if *lossy.TCPSegmentsSent < lossyBytes/65_535 {
		t.Errorf("%d segments cannot hold %d bytes", *lossy.TCPSegmentsSent, lossyBytes)
	}
	mean, maximum := *lossy.RoundTripNanoseconds, *lossy.RoundTripMaxNanoseconds
	if mean <= 0 || maximum < mean || maximum > took.Nanoseconds() {
		t.Errorf("round trips in %v: mean %d ns, maximum %d ns", took, mean, maximum)
	}
	agent.options.Ports = map[uint16]bool{1: true}
	if elsewhere := sampleDownload(t, agentServer.URL); elsewhere.RoundTripNanoseconds != nil {
		t.Error("connections of other ports are sampled")
	}
}

func sampleDownload(t *testing.T, agent string) contract.ServerSample {
	t.Helper()
	var begun map[string]*int64
	if status := call(t, agent+"/v1/begin", token, `{}`, &begun); status != http.StatusOK {
		t.Fatalf("begin: status %d", status)
	}
	response, err := http.Get("http://127.0.0.1:" + lossyPort)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if received, err := io.Copy(io.Discard, response.Body); err != nil || received != lossyBytes {
		t.Fatalf("%d bytes, %v", received, err)
	}
	var sample contract.ServerSample
	if status := call(t, agent+"/v1/end", token, "", &sample); status != http.StatusOK {
		t.Fatalf("end: status %d", status)
	}
	if sample.TCPRetransmits == nil || sample.TCPSegmentsSent == nil {
		t.Fatalf("the counters of TCP are absent: %+v", sample)
	}
	return sample
}
