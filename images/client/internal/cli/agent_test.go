package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"tierbench.io/client/internal/agent"
	"tierbench.io/client/internal/agentclienttest"
	"tierbench.io/client/internal/pinned"
	"tierbench.io/client/internal/porttest"
)

// agentFields starts an agent, and returns the fields of a target that name it. `around` wraps its handler.
func agentFields(t *testing.T, options agent.Options, around ...func(http.Handler) http.Handler) []string {
	t.Helper()
	options.Token, options.Interval = "secret", 10*time.Millisecond
	made, err := agent.New(options)
	if err != nil {
		t.Fatal(err)
	}
	handler := made.Handler()
	for _, one := range around {
		handler = one(handler)
	}
	url, pin := agentclienttest.Serve(t, handler)
	token, pinFile := filepath.Join(t.TempDir(), "token"), filepath.Join(t.TempDir(), "pin")
	write(t, token, options.Token)
	write(t, pinFile, pin)
	return []string{"agent.url=" + url, "agent.tokenFile=" + token, "agent.pinFile=" + pinFile}
}

func TestPortListIsParsed(t *testing.T) {
	ports, err := parsePorts("8080, 8443")
	if err != nil || !maps.Equal(ports, map[uint16]bool{8080: true, 8443: true}) {
		t.Errorf("%v %v", ports, err)
	}
	for _, wrong := range []string{"http", "65536", "8080,"} {
		if _, err := parsePorts(wrong); err == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
}

// keyFile writes a private key like the operator's, and returns its pin.
func keyFile(t *testing.T) (path, pin string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "key")
	write(t, path, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})))
	return path, pinned.Of(public)
}

func TestAgentNeedsATokenAndAKey(t *testing.T) {
	token, empty := filepath.Join(t.TempDir(), "token"), filepath.Join(t.TempDir(), "token")
	write(t, token, "secret")
	write(t, empty, " \n")
	key, _ := keyFile(t)
	for _, files := range [][2]string{{empty, key}, {empty + ".absent", key}, {token, empty}, {token, empty + ".absent"}} {
		if code := Main([]string{"agent", "--address=127.0.0.1", "--port=0", "--directory=", "--token-file", files[0], "--key-file", files[1]}); code == 0 {
			t.Errorf("%s: exit code 0", files)
		}
	}
}

// TestAgentServesUntilTermination checks the key of an agent, and that it serves at no other address.
func TestAgentServesUntilTermination(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, "secret")
	file, pin := keyFile(t)
	for _, address := range []string{"127.0.0.2", "::1"} {
		port := strconv.Itoa(porttest.Free(t))
		ended := make(chan int, 1)
		go func() {
			ended <- Main([]string{"agent", "--address", address, "--port", port, "--directory", t.TempDir(), "--token-file", token, "--key-file", file})
		}()
		eventually(t, "the agent answers", func() bool { return isHealthy(net.JoinHostPort(address, port), pin) })
		if conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
			conn.Close()
			t.Errorf("the agent at %s answers at 127.0.0.1, too", address)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		select {
		case code := <-ended:
			if code != 0 {
				t.Errorf("exit code %d", code)
			}
		case <-time.After(soon):
			t.Errorf("the agent still runs after %v", soon)
		}
	}
}

func isHealthy(address, pin string) bool {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: pinned.Client(pin)}}
	response, err := client.Get("https://" + address + "/healthz")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}
