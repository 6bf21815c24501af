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

// gated starts iperf3 servers behind gates. It returns them, and the fields of a target that name the agent of the
// gates.
func gated(t *testing.T, number int, around ...func(http.Handler) http.Handler) (servers []*iperf3, flags []string) {
	t.Helper()
	folder, ports := t.TempDir(), map[uint16]bool{}
	program := named(t, "iperf3")
	for index := range number {
		server := &iperf3{port: porttest.Free(t)}
		socket := filepath.Join(folder, strconv.Itoa(index))
		process(t, os.Stderr, "gate", "--socket="+socket, "--", program, "--server", "--forceflush", "--bind", "127.0.0.1", "--port", fmt.Sprint(server.port))
		eventually(t, "the gate exists", func() bool { return exists(socket) })
		ports[uint16(server.port)] = true
		servers = append(servers, server)
	}
	return servers, agentFields(t, agent.Options{Process: filepath.Base(program), Ports: ports, Gates: folder}, around...)
}

// named links a program under a name that no other process has.
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
		t.Error("the server listens before its client connects")
	}
	code, trials, _ := sealed(t, servers[0].arguments(append(flags, "trials=1-2")...)...)
	if code != 0 || len(trials) != 2 || trials[1].Outcome != contract.Completed {
		t.Errorf("exit code %d, %+v", code, trials)
	}
	eventually(t, "the server has stopped listening", func() bool { return !servers[0].answers() })
}

func TestKilledClientClosesItsGate(t *testing.T) {
	t.Parallel()
	servers, flags := gated(t, 1)
	client := process(t, os.Stderr, servers[0].arguments(append(flags, "durationSeconds=60")...)...)
	eventually(t, "the server listens", servers[0].answers)
	sendSignal(t, client, syscall.SIGKILL)
	asked := time.Now()
	eventually(t, "the server has stopped listening", func() bool { return !servers[0].answers() })
	if took := time.Since(asked); took > soon {
		t.Errorf("the server listened for %v", took)
	}
}

// TestSilentConnectionDoesNotBlockTheClient has another client connect as soon as the server listens, and send nothing.
func TestSilentConnectionDoesNotBlockTheClient(t *testing.T) {
	t.Parallel()
	var once sync.Once
	server := make(chan *iperf3, 1)
	first := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
			if request.URL.Path == "/v1/open" {
				writer = &opening{writer, func() { once.Do(func() { silent(t, (<-server).address()) }) }}
			}
			next.ServeHTTP(writer, request)
		})
	}
	servers, flags := gated(t, 1, first)
	server <- servers[0]
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

// silent connects and sends nothing until the test ends.
func silent(t *testing.T, address string) {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	t.Cleanup(func() { connection.Close() })
}
