package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tierbench.io/client/internal/agentclient"
	"tierbench.io/client/internal/agentclienttest"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/gate"
)

const timeout = time.Minute // longer than anything takes on a busy machine

// startGate starts a gate whose server is a script.
func startGate(t *testing.T, folder, number, script string) {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- gate.Serve(ctx, filepath.Join(folder, number), []string{"sh", "-c", script}) }()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestClientWaitsForALateServer starts the gate after the agent has refused to open it.
func TestClientWaitsForALateServer(t *testing.T) {
	folder := t.TempDir()
	made, err := New(Options{Token: token, Gates: folder})
	if err != nil {
		t.Fatal(err)
	}
	refused := make(chan struct{}, 1)
	url, pin := agentclienttest.Serve(t, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		made.Handler().ServeHTTP(writer, request)
		select {
		case refused <- struct{}{}:
		default:
		}
	}))
	go func() {
		<-refused
		startGate(t, folder, "0", "echo listening; exec sleep 60")
	}()
	client := agentclient.New(url, token, pin)
	client.Opening = timeout
	shut, err := client.Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	shut()
}

// TestRefusedClientReportsReason uses an agent that refuses every request at once.
func TestRefusedClientReportsReason(t *testing.T) {
	t.Parallel()
	url, pin := agentclienttest.Serve(t, http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		refuse(writer, http.StatusServiceUnavailable, agentclient.ServerNotStarted, "the port is taken")
	}))
	client := agentclient.New(url, token, pin)
	client.Opening = 2 * time.Second
	_, err := client.Open(t.Context(), 0)
	var failure *contract.Failure
	if !errors.As(err, &failure) || failure.Reason != agentclient.ServerNotStarted || failure.Message != "the port is taken" {
		t.Errorf("%v", err)
	}
}

func TestServerThatCannotListenReportsReason(t *testing.T) {
	folder := t.TempDir()
	made, err := New(Options{Token: token, Gates: folder})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(made.Handler())
	t.Cleanup(server.Close)
	startGate(t, folder, "1", "echo Address already in use >&2; exit 1")
	for gate, message := range map[int]string{1: "Address already in use", 2: "no such file"} {
		var failure contract.Failure
		status := 0
		for deadline := time.Now().Add(timeout); !strings.Contains(failure.Message, message) && time.Now().Before(deadline); { // until the gate exists
			status = call(t, server.URL+"/v1/open", token, fmt.Sprintf(`{"gate":%d}`, gate), &failure)
		}
		if status != http.StatusServiceUnavailable || failure.Reason != agentclient.ServerNotStarted || !strings.Contains(failure.Message, message) {
			t.Errorf("gate %d: status %d, %+v", gate, status, failure)
		}
	}
}

func TestGateNeedsTokenAndValidNumber(t *testing.T) {
	folder := t.TempDir()
	url := start(t, folder)
	for body, status := range map[string]int{`{"gate":0}`: http.StatusBadRequest, `{}`: http.StatusBadRequest, `{"gate":"../x"}`: http.StatusBadRequest} {
		var failure contract.Failure
		if found := call(t, url+"/v1/open", token, body, &failure); found != status {
			t.Errorf("%s: %d %+v", body, found, failure)
		}
		if found := call(t, url+"/v1/open", "wrong", body, &failure); found != http.StatusUnauthorized {
			t.Errorf("%s without the token: %d", body, found)
		}
	}
}
