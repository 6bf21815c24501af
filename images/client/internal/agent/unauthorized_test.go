package agent

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// serveWithoutTLS serves an agent as the program does, but without TLS.
func serveWithoutTLS(t *testing.T, options Options, readTimeout time.Duration) *httptest.Server {
	t.Helper()
	made, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(nil)
	server.Config = made.server()
	server.Config.ReadTimeout = readTimeout
	server.Start()
	t.Cleanup(server.Close)
	return server
}

func connect(t *testing.T, server *httptest.Server) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

// awaitClose waits until the other side has closed a connection.
func awaitClose(connection net.Conn) {
	_, _ = io.Copy(io.Discard, connection)
}

func TestAgentClosesOldestUnauthorizedConnections(t *testing.T) {
	server := serveWithoutTLS(t, Options{Token: token}, time.Hour)
	dials := 0
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		dials++
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}}
	post := func(path string) int {
		request, err := http.NewRequest(http.MethodPost, server.URL+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		return response.StatusCode
	}
	if status := post("/v1/begin"); status != http.StatusOK {
		t.Fatal(status)
	}
	var idle []net.Conn
	for range 3 * mostUnauthorized {
		idle = append(idle, connect(t, server))
	}
	for _, one := range idle[:2*mostUnauthorized] {
		awaitClose(one)
	}
	open := 0
	for _, one := range idle[2*mostUnauthorized:] {
		_ = one.SetReadDeadline(time.Now())
		if _, err := one.Read(make([]byte, 1)); err != nil && err != io.EOF {
			open++
		}
	}
	if open != mostUnauthorized {
		t.Errorf("%d of the last %d connections are still open", open, mostUnauthorized)
	}
	if status := post("/v1/end"); status != http.StatusOK || dials != 1 {
		t.Errorf("the client: %d after %d connections", status, dials)
	}
}

// TestReadTimeoutEndsOnlyUnauthorizedConnections holds a gate open while the server closes later connections that have
// shown no token.
func TestReadTimeoutEndsOnlyUnauthorizedConnections(t *testing.T) {
	folder := t.TempDir()
	startGate(t, folder, "0", "echo listening; exec sleep 60")
	server := serveWithoutTLS(t, Options{Token: token, Gates: folder}, 100*time.Millisecond)
	request, err := http.NewRequest(http.MethodPost, server.URL+"/v1/open", strings.NewReader(`{"gate":0}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	client := &http.Client{Transport: &http.Transport{}}
	var held *http.Response
	for held == nil || held.StatusCode == http.StatusServiceUnavailable { // the gate may not exist yet
		request.Body = io.NopCloser(strings.NewReader(`{"gate":0}`))
		if held, err = client.Do(request); err != nil {
			t.Log(err) // on a busy machine the timeout may pass before the server reads the request
			continue
		}
		defer held.Body.Close()
	}
	shut := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, held.Body)
		close(shut)
	}()
	for range 5 {
		half := connect(t, server)
		if _, err := half.Write([]byte("POST /v1/open HTTP/1.1\r\nX: ")); err != nil {
			t.Fatal(err)
		}
		awaitClose(half)
	}
	select {
	case <-shut:
		t.Error("the gate closed before its client left")
	default:
	}
}
