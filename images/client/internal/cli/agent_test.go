package cli

import (
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestPorts(t *testing.T) {
	ports, err := parsePorts("8080, 8443")
	if err != nil || !maps.Equal(ports, map[uint16]bool{8080: true, 8443: true}) {
		t.Errorf("%v %v", ports, err)
	}
	for _, wrong := range []string{"http", "65536", "8080,"} {
		if _, err := parsePorts(wrong); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
}

func TestAnAgentNeedsAToken(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(empty, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{empty, empty + ".absent"} {
		if code := Main([]string{"agent", "--listen", "127.0.0.1:0", "--directory", t.TempDir(), "--token-file", file}); code == 0 {
			t.Errorf("%s: exit code 0", file)
		}
	}
}

func TestAnAgentEndsWhenTold(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	ended := make(chan int, 1)
	go func() {
		ended <- Main([]string{"agent", "--listen", address, "--directory", t.TempDir(), "--token-file", token})
	}()
	awaitHealth(t, "http://"+address+"/healthz")
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case code := <-ended:
		if code != 0 {
			t.Errorf("exit code %d", code)
		}
	case <-time.After(time.Second):
		t.Error("it goes on after a second")
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func awaitHealth(t *testing.T, url string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		response, err := http.Get(url)
		if err == nil {
			response.Body.Close()
			if response.StatusCode != http.StatusOK {
				t.Fatalf("health: %s", response.Status)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
