package download

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
)

// deaf listens, and drops every further request for a connection: its queue, one long, is full.
func deaf(t *testing.T) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(socket, 0); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
	for range 10 {
		conn, err := net.DialTimeout("tcp", address, 50*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { conn.Close() })
	}
	t.Fatal("a listener with a queue of one still takes connections")
	return ""
}

func TestAServerThatDoesNotAnswerIsUnreachable(t *testing.T) {
	options, _, _ := faulty(t, func(int, http.ResponseWriter, *http.Request) bool { return false })
	options.URL.Host, options.Attempts, options.ReadTimeout = deaf(t), 2, 100*time.Millisecond
	started := time.Now()
	trials, err := run(t, options)
	if err != nil {
		t.Fatal(err)
	}
	if trials[0].Failure.Reason != "AttemptsExhausted" || trials[0].Transfer.RetryCauses[contract.Unreachable] != 1 {
		t.Errorf("%+v, %+v", trials[0].Failure, trials[0].Transfer)
	}
	if elapsed := time.Since(started); elapsed < 200*time.Millisecond || elapsed > 2*time.Second {
		t.Errorf("two attempts with a read timeout of 100 ms took %v", elapsed)
	}
}

func TestNamesAreResolvedAndTimed(t *testing.T) {
	options, _, _ := faulty(t, func(int, http.ResponseWriter, *http.Request) bool { return false })
	trials, err := run(t, options)
	if err != nil || trials[0].Transfer.DNSNanoseconds != 0 || trials[0].Transfer.ConnectNanoseconds <= 0 || trials[0].Transfer.FirstByteNanoseconds <= 0 {
		t.Errorf("an address: %v %+v", err, trials[0].Transfer)
	}
	options.URL.Host = net.JoinHostPort("localhost", options.URL.Port()) // ::1 too, where nobody listens
	trials, err = run(t, options)
	if err != nil || trials[0].Outcome != contract.Completed || trials[0].Transfer.DNSNanoseconds <= 0 || trials[0].Transfer.Retries != 0 {
		t.Errorf("a name: %v %+v %+v", err, trials[0].Failure, trials[0].Transfer)
	}
}

func TestAServerThatSpeaksAnotherProtocolIsCorrupt(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(conn, "220 ready for mail\r\n\r\n")
			defer conn.Close()
		}
	}()
	address := &url.URL{Scheme: "http", Host: listener.Addr().String(), Path: "/file.bin"}
	options := &Options{URL: address, Size: size, First: 1, Last: 1, Concurrency: 1, ReadTimeout: time.Second, Attempts: 2, Wait: time.Millisecond}
	trials, err := run(t, options)
	if err != nil {
		t.Fatal(err)
	}
	if trials[0].Transfer.RetryCauses[contract.Corrupt] != 1 {
		t.Errorf("%+v, %+v", trials[0].Failure, trials[0].Transfer)
	}
}

func TestASlowServerIsNotAStall(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Set("Content-Length", "10")
		for range 10 {
			_, _ = writer.Write([]byte("x"))
			writer.(http.Flusher).Flush()
			time.Sleep(100 * time.Millisecond)
		}
	}))
	defer server.Close()
	address, _ := url.Parse(server.URL)
	options := &Options{URL: address, Size: 10, First: 1, Last: 1, Concurrency: 1, ReadTimeout: 400 * time.Millisecond, Attempts: 2, Wait: time.Millisecond}
	trials, err := run(t, options)
	if err != nil {
		t.Fatal(err)
	}
	transfer := trials[0].Transfer
	if transfer.Retries != 0 || transfer.Bytes != 10 {
		t.Errorf("%+v", transfer)
	}
	if longest := time.Duration(transfer.LongestStallNanoseconds); longest < 90*time.Millisecond || longest > 400*time.Millisecond {
		t.Errorf("longest stall %v, 100 ms were waited", longest)
	}
}

func TestADeadlineThatFiredTooEarlyMoves(t *testing.T) {
	conn, other := net.Pipe()
	defer conn.Close()
	defer other.Close()
	w, err := newWatch(conn, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	w.last = time.Now().Add(-59 * time.Second)
	if !w.early(os.ErrDeadlineExceeded) {
		t.Error("a second before its time it is not early")
	}
	w.last = time.Now().Add(-time.Minute)
	if w.early(os.ErrDeadlineExceeded) {
		t.Error("it is early when the timeout has passed")
	}
	if w.early(net.ErrClosed) {
		t.Error("another error is early")
	}
}
