package agent

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/gate"
)

// behind starts a gate before a server that is a script.
func behind(t *testing.T, folder, number, script string) {
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

func TestAServerThatIsLateIsAwaitedAndOneThatCannotListenHasAReason(t *testing.T) {
	folder := t.TempDir()
	client := parts(t, Options{Token: token, Gates: folder})()
	client.Opening = 400 * time.Millisecond
	time.AfterFunc(100*time.Millisecond, func() { behind(t, folder, "0", "echo listening; exec sleep 60") })
	shut, err := client.Open(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	shut()
	behind(t, folder, "1", "echo Address already in use >&2; exit 1")
	for gate, said := range map[int]string{1: "Address already in use", 2: "no such file"} {
		_, err := client.Open(context.Background(), gate)
		var failure *contract.Failure
		if !errors.As(err, &failure) || failure.Reason != "ServerNotStarted" || !strings.Contains(failure.Message, said) {
			t.Errorf("gate %d: %v", gate, err)
		}
	}
}

func TestNobodyOpensAGateWithoutTheTokenOrOneThatIsNone(t *testing.T) {
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
