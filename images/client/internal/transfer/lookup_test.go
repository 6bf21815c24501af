package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/porttest"
)

const (
	flagsOfAnAnswer = "\x81\x80"
	localhost       = "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x7f\x00\x00\x01" // A 127.0.0.1 of the name asked for
)

// names is a DNS server that resolves every name to 127.0.0.1, after a delay.
type names struct {
	mutex    sync.Mutex
	asked    int
	answered time.Time
}

// resolving starts a DNS server, and resolves names there until the test ends.
func resolving(t *testing.T, while time.Duration) *names {
	t.Helper()
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	server := &names{}
	go server.serve(socket, while)
	resolveBy(t, func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", socket.LocalAddr().String())
	})
	return server
}

// lookups returns how many questions were asked, and when the last answer was sent.
func (n *names) lookups() (asked int, answered time.Time) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.asked, n.answered
}

func resolveBy(t *testing.T, dial func(context.Context, string, string) (net.Conn, error)) {
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: dial}
	t.Cleanup(func() { net.DefaultResolver = before })
}

func (n *names) serve(socket net.PacketConn, while time.Duration) {
	buffer := make([]byte, 1500)
	for {
		number, from, err := socket.ReadFrom(buffer)
		if err != nil {
			return
		}
		time.Sleep(while)
		n.mutex.Lock()
		n.asked++
		n.answered = time.Now()
		n.mutex.Unlock()
		_, _ = socket.WriteTo(answer(buffer[:number]), from)
	}
}

// answer returns the answer to a question: an address for A, nothing for AAAA.
func answer(asked []byte) []byte {
	question := asked[12 : 12+bytes.IndexByte(asked[12:], 0)+5]
	kind, found := question[len(question)-3], ""
	if kind == 1 {
		found = localhost
	}
	head := append(asked[:2:2], flagsOfAnAnswer+"\x00\x01\x00"...)
	head = append(head, byte(min(len(found), 1)), 0, 0, 0, 0)
	return append(append(head, question...), found...)
}

func TestNameIsResolvedOnceBeforeTiming(t *testing.T) {
	const while = 300 * time.Millisecond
	dns := resolving(t, while)
	server, options := faulty(t, once(func(writer http.ResponseWriter) { half(writer, abandon) }))
	options.URL.Host = strings.Replace(options.URL.Host, "127.0.0.1", "server.test.", 1)
	options.Concurrency, options.Last = 2, 2
	trials := run(t, options)
	retried(t, trials[0], contract.Truncated)
	for _, trial := range trials {
		if trial.Outcome != contract.Completed || trial.Transfer.LookupNanoseconds < while.Nanoseconds() {
			t.Errorf("%+v %+v", trial.Failure, trial.Transfer)
		}
	}
	asked, answered := dns.lookups()
	if asked != 4 || len(server.ranges) != 5 {
		t.Errorf("%d lookups for %d requests of two trials, want one per address family and trial", asked, len(server.ranges))
	}
	started, err := time.Parse(time.RFC3339Nano, trials[1].StartTime)
	if err != nil || started.Before(answered) {
		t.Errorf("the clock started at %v, the name was known at %v: %v", started, answered, err)
	}
}

func TestUnresolvedNameDoesNotCountAsRetry(t *testing.T) {
	resolveBy(t, func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
	})
	server, options := faulty(t, honest)
	options.URL.Host = strings.Replace(options.URL.Host, "127.0.0.1", "server.test.", 1)
	options.Last = 2
	trials := run(t, options)
	if len(trials) != 2 {
		t.Fatalf("%d trials, want 2: one that fails does not end the series", len(trials))
	}
	for _, trial := range trials {
		failed(t, trial, "LookupFailed")
		retried(t, trial)
	}
	server.expectRanges(t)
}

func TestInterruptedLookupEndsTheSeries(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	resolveBy(t, func(ctx context.Context, _, _ string) (net.Conn, error) {
		cancel()
		return nil, context.Canceled
	})
	_, options := faulty(t, honest)
	options.URL.Host = "server.test."
	report := &collected{}
	if err := options.run(ctx, report); !errors.Is(err, context.Canceled) || len(report.trials) != 0 {
		t.Errorf("%v, %d trials", err, len(report.trials))
	}
}

// onIPv6 starts a server on ::1, which every kernel that runs these tests has.
func onIPv6(t *testing.T) (*server, *trialOptions) {
	t.Helper()
	made := newServer(t, honest)
	listener, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Fatalf("the kernel has no IPv6: %v", err)
	}
	made.Listener.Close()
	made.Listener = listener
	made.Start()
	return made, made.options(t)
}

func TestDownloadFromIPv6Address(t *testing.T) {
	server, options := onIPv6(t)
	host := ""
	server.spoil = func(_ int, _ http.ResponseWriter, request *http.Request) bool {
		host = request.Host
		return false
	}
	options.VerifyDigest = true
	trial := run(t, options)[0]
	completed(t, trial)
	if host != options.URL.Host || trial.Transfer.LookupNanoseconds != 0 {
		t.Errorf("%q was asked for at %s: %+v", host, options.URL.Host, trial.Transfer)
	}
}

func TestOtherAddressFamilyIsTriedAfterATimeout(t *testing.T) {
	listening, _ := onIPv6(t)
	six := netip.MustParseAddrPort(listening.Listener.Addr().String())
	refusing := fmt.Sprintf("127.0.0.1:%d", porttest.Free(t))
	for name, four := range map[string]string{"silent": silent(t), "refusing": refusing} {
		t.Run(name, func(t *testing.T) {
			conn, err := target{addresses: []netip.AddrPort{netip.MustParseAddrPort(four), six}}.dial(context.Background(), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if conn.RemoteAddr().String() != six.String() {
				t.Errorf("connected to %v", conn.RemoteAddr())
			}
		})
	}
}

func TestNextAddressIsTriedWhenOneRefuses(t *testing.T) {
	_, options := faulty(t, honest)
	good := netip.MustParseAddrPort(options.URL.Host)
	bad := netip.AddrPortFrom(good.Addr().Next(), good.Port())
	conn, err := target{addresses: []netip.AddrPort{bad, good}}.dial(context.Background(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}
