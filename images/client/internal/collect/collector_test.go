package collect

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tierbench.io/client/internal/pinned"
)

const token = "t0ken"

// operator is a fake operator that receives lines.
type operator struct {
	mutex    sync.Mutex
	taken    []byte
	recorded int
	requests int
	wanted   bool
	answer   func(*operator, http.ResponseWriter) bool // whether the request is then handled as usual
}

func (o *operator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.requests++
	if r.Header.Get("Authorization") != "Bearer "+token {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if o.answer != nil && !o.answer(o, w) {
		return
	}
	body, err := io.ReadAll(r.Body)
	if offset, _ := strconv.Atoi(r.URL.Query().Get("offset")); err == nil && offset == len(o.taken) {
		o.taken = append(o.taken, body...)
	}
	o.recorded = bytes.Count(o.taken, []byte("\n"))
	_ = json.NewEncoder(w).Encode(answer{Wanted: o.wanted, Received: int64(len(o.taken)), Recorded: o.recorded})
}

func serve(t *testing.T, o *operator) *Collector {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(o)
	if server.TLS, err = pinned.Server(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})); err != nil {
		t.Fatal(err)
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	collector := New(server.URL, token, pinned.Of(public))
	collector.Pause = time.Millisecond
	return collector
}

func spooled(t *testing.T, lines int) *Spool {
	t.Helper()
	spool, err := NewSpool(io.Discard, filepath.Join(t.TempDir(), "lines"))
	if err != nil {
		t.Fatal(err)
	}
	for range lines {
		if _, err := spool.Write([]byte(strings.Repeat("x", 999) + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	return spool
}

func TestLinesAreDelivered(t *testing.T) {
	o := &operator{wanted: true}
	if err := serve(t, o).Deliver(context.Background(), spooled(t, 500), 500); err != nil {
		t.Fatal(err)
	}
	if len(o.taken) != 500_000 || o.recorded != 500 {
		t.Errorf("%d bytes, %d trials", len(o.taken), o.recorded)
	}
}

func TestNoLinesAreSentIfLogsCanBeRead(t *testing.T) {
	o := &operator{}
	if err := serve(t, o).Deliver(context.Background(), spooled(t, 500), 500); err != nil || o.requests != 1 || len(o.taken) > 0 {
		t.Errorf("%d requests, %d bytes, %v", o.requests, len(o.taken), err)
	}
}

// TestDeliveryContinuesAfterARestart restarts the operator, which then has no lines.
func TestDeliveryContinuesAfterARestart(t *testing.T) {
	restarts := 0
	o := &operator{wanted: true, answer: func(o *operator, w http.ResponseWriter) bool {
		if restarts++; restarts%3 == 0 && restarts < 60 {
			o.taken = nil
			w.WriteHeader(http.StatusServiceUnavailable)
			return false
		}
		return true
	}}
	if err := serve(t, o).Deliver(context.Background(), spooled(t, 500), 500); err != nil || len(o.taken) != 500_000 {
		t.Errorf("%d bytes, %v", len(o.taken), err)
	}
}

// TestClientStaysUntilItsTrialsAreRecorded: received trials are not recorded yet.
func TestClientStaysUntilItsTrialsAreRecorded(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	o := &operator{wanted: true}
	o.answer = func(o *operator, w http.ResponseWriter) bool {
		if o.requests > 20 {
			cancel()
		}
		_ = json.NewEncoder(w).Encode(answer{Wanted: true, Received: 1000, Recorded: 0})
		return false
	}
	if err := serve(t, o).Deliver(ctx, spooled(t, 1), 1); err == nil || o.requests <= 20 {
		t.Errorf("%d requests, %v", o.requests, err)
	}
}

func TestDeliveryFailsAfterItsTimeout(t *testing.T) {
	o := &operator{answer: func(_ *operator, w http.ResponseWriter) bool {
		w.WriteHeader(http.StatusNotFound)
		return false
	}}
	collector := serve(t, o)
	collector.Timeout = 50 * time.Millisecond
	if err := collector.Deliver(context.Background(), spooled(t, 1), 1); err == nil || !strings.Contains(err.Error(), "404") {
		t.Error(err)
	}
}

func TestServerWithAnotherKeyReceivesNothing(t *testing.T) {
	o := &operator{wanted: true}
	collector := serve(t, o)
	other := New(collector.url, token, "sha256//x")
	other.Pause, other.Timeout = time.Millisecond, 0
	if err := other.Deliver(context.Background(), spooled(t, 1), 1); err == nil || o.requests != 0 {
		t.Errorf("%d requests, %v", o.requests, err)
	}
}

func TestSpoolWithoutAFileStillPrints(t *testing.T) {
	var out bytes.Buffer
	spool, err := NewSpool(&out, filepath.Join(t.TempDir(), "missing", "lines"))
	if err == nil {
		t.Error("no error")
	}
	if _, err := spool.Write([]byte("line\n")); err != nil || out.String() != "line\n" || spool.Size() != 0 {
		t.Errorf("%q, %v", out.String(), err)
	}
}
