package cli

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"tierbench.io/client/internal/agent"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/porttest"
)

// gated are iperf3 servers behind gates, and the fields of a target that name the agent that opens them.
func gated(t *testing.T, number int, around ...func(http.Handler) http.Handler) (servers []*iperf3, flags []string) {
	t.Helper()
	folder, ports := t.TempDir(), map[uint16]bool{}
	program := named(t, "iperf3")
	for index := range number {
		server := &iperf3{port: porttest.Free(t)}
		socket := filepath.Join(folder, strconv.Itoa(index))
		process(t, os.Stderr, "gate", "--socket="+socket, "--", program, "--server", "--forceflush", "--bind", "127.0.0.1", "--port", fmt.Sprint(server.port))
		eventually(t, "the gate is there", func() bool { return exists(socket) })
		ports[uint16(server.port)] = true
		servers = append(servers, server)
	}
	return servers, agentFields(t, agent.Options{Process: filepath.Base(program), Ports: ports, Gates: folder}, around...)
}

// named is a program by a name that no other process has.
func named(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), fmt.Sprintf("%s-%d", program, porttest.Free(t)))
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	return link
}

// observed returns the arguments of `network` for a server with an agent.
func observed(t *testing.T, more ...string) []string {
	t.Helper()
	servers, flags := gated(t, 1)
	return servers[0].arguments(append(flags, more...)...)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestServerListensOnlyDuringTrials(t *testing.T) {
	t.Parallel()
	servers, flags := gated(t, 1)
	if servers[0].answers() {
		t.Error("it listens before its client is there")
	}
	code, trials, _ := sealed(t, servers[0].arguments(append(flags, "trials=1-2")...)...)
	if code != 0 || len(trials) != 2 || trials[1].Outcome != contract.Completed {
		t.Errorf("exit code %d, %+v", code, trials)
	}
	eventually(t, "it listens no more", func() bool { return !servers[0].answers() })
}

func TestKilledClientClosesItsGate(t *testing.T) {
	t.Parallel()
	servers, flags := gated(t, 1)
	client := process(t, os.Stderr, servers[0].arguments(append(flags, "durationSeconds=60")...)...)
	eventually(t, "it listens", servers[0].answers)
	tell(t, client, syscall.SIGKILL)
	asked := time.Now()
	eventually(t, "it listens no more", func() bool { return !servers[0].answers() })
	if took := time.Since(asked); took > soon {
		t.Errorf("it listened for %v", took)
	}
}

// TestSilentStrangerIsLeftBehind that connects as soon as the server listens, and sends nothing.
func TestSilentStrangerIsLeftBehind(t *testing.T) {
	t.Parallel()
	var (
		servers []*iperf3
		flags   []string
		once    sync.Once
	)
	first := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
			if request.URL.Path == "/v1/open" {
				writer = &opening{writer, func() { once.Do(func() { silent(t, servers[0].address()) }) }}
			}
			next.ServeHTTP(writer, request)
		})
	}
	servers, flags = gated(t, 1, first)
	code, trials, _ := sealed(t, servers[0].arguments(append(flags, "durationSeconds=1")...)...)
	if code != 0 || len(trials) != 1 || trials[0].Outcome != contract.Completed {
		t.Errorf("exit code %d, %+v", code, trials)
	}
}

// opening calls opened before the client learns that the gate is open.
type opening struct {
	http.ResponseWriter
	opened func()
}

func (o *opening) WriteHeader(status int) {
	if status == http.StatusOK {
		o.opened()
	}
	o.ResponseWriter.WriteHeader(status)
}

func (o *opening) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// silent connects until the test ends.
func silent(t *testing.T, address string) {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	t.Cleanup(func() { connection.Close() })
}
