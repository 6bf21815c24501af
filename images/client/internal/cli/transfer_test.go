package cli

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/contracttest"
)

// TestMain lets the test program run as tierbench-client, for tests that need a separate process. Most of them wait, so
// more tests run at once than there are processors.
func TestMain(m *testing.M) {
	if os.Getenv("TIERBENCH_CLIENT") != "" {
		os.Exit(Main(os.Args[1:]))
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	engines = must(os.MkdirTemp("", "engines"))
	if err := os.Setenv("PATH", engines+":"+os.Getenv("PATH")); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(engines)
	os.Exit(code)
}

// engines is a folder in PATH for the engines of tests.
var engines string

func must(made string, err error) string {
	if err != nil {
		panic(err)
	}
	return made
}

const body = "0123456789"

// serving returns the arguments to download from a server that answers with `handle`, or with body.
func serving(t *testing.T, handle http.HandlerFunc, more ...string) []string {
	t.Helper()
	if handle == nil {
		handle = func(writer http.ResponseWriter, _ *http.Request) { fmt.Fprint(writer, body) }
	}
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	address := []string{"Transfer", "url=" + server.URL + "/10.bin", "sizeBytes=10", "waitMilliseconds=1", "attempts=2"}
	return append(address, more...)
}

// process starts tierbench-client, to measure a plan if the first argument is a kind of plan. Its standard output goes to `out`.
func process(t *testing.T, out io.Writer, arguments ...string) *exec.Cmd {
	t.Helper()
	if kind := arguments[0]; slices.Contains([]string{"Transfer", "Broker", "Network"}, kind) {
		arguments = inPlan(t, kind, arguments[1:])
	}
	command := exec.Command(os.Args[0], arguments...)
	command.Env = append(os.Environ(), "TIERBENCH_CLIENT=1")
	command.Stdout, command.Stderr = out, os.Stderr
	begin(t, command, syscall.SIGTERM)
	t.Cleanup(func() { _ = command.Process.Kill() })
	return command
}

// begin starts a program that gets a signal when the tests end, even if they are killed.
func begin(t *testing.T, command *exec.Cmd, end syscall.Signal) {
	t.Helper()
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: end}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
}

func exitCode(t *testing.T, command *exec.Cmd) int {
	t.Helper()
	var ended *exec.ExitError
	if err := command.Wait(); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode()
}

// sealed runs a client to its end, and checks its lines and its seal against the contract.
func sealed(t *testing.T, arguments ...string) (code int, trials []contract.Trial, seal contract.Seal) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	var out bytes.Buffer
	code = exitCode(t, process(t, &out, append(arguments, "--output=json", "--termination-log="+log)...))
	trials, seal = contracttest.Check(t, out.Bytes(), read(t, log))
	return code, trials, seal
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestDownloadRunsRequestedTrials(t *testing.T) {
	code, trials, seal := sealed(t, serving(t, nil, "trials=3-5", "warmupTrials=2")...)
	if code != 0 || seal.Failure != nil || seal.Engine.Name != "tierbench-client" {
		t.Errorf("exit code %d, %+v", code, seal)
	}
	found := ""
	for _, trial := range trials {
		found += fmt.Sprintf("%d %v %s; ", trial.Trial, trial.Warmup, trial.Outcome)
	}
	if want := "1 true Completed; 2 true Completed; 3 false Completed; 4 false Completed; 5 false Completed; "; found != want {
		t.Errorf("%s, want %s", found, want)
	}
}

func TestFailedTrialsDoNotFailTheProgram(t *testing.T) {
	broken := func(writer http.ResponseWriter, _ *http.Request) { writer.WriteHeader(http.StatusBadGateway) }
	code, trials, seal := sealed(t, serving(t, broken, "trials=1-2")...)
	if code != 0 || seal.Failure != nil || len(trials) != 2 || trials[1].Failure.Reason != "AttemptsExhausted" {
		t.Errorf("exit code %d, %+v, %+v", code, seal, trials)
	}
}

func TestFailureOfTheProgramIsInItsSeal(t *testing.T) {
	code, trials, seal := sealed(t, serving(t, http.NotFound, "verifyDigest")...)
	if code != exitFailure || len(trials) != 0 || seal.Failure == nil || seal.Failure.Reason != "NoDigest" {
		t.Errorf("exit code %d, %+v", code, seal)
	}
}

func TestWrongArgumentsAreReportedWithAHint(t *testing.T) {
	for wrong, says := range map[string]string{
		"sizeBytes=0":                      "sizeBytes is 0",
		"cacheState=Cold":                  "agent",
		"tls=TLSv1.3":                      "https",
		"maxWaitMilliseconds=1":            "as long as waitMilliseconds",
		"agent.url=https://127.0.0.1:8090": "tokenFile",
		"--plans=x":                        "--help",
	} {
		t.Run(wrong, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			given := append(serving(t, nil, "waitMilliseconds=2"), "--output=json", "--termination-log="+log, wrong)
			if code := exitCode(t, process(t, io.Discard, given...)); code != exitFailure {
				t.Errorf("exit code %d", code)
			}
			_, seal := contracttest.Check(t, nil, read(t, log))
			if seal.Failure == nil || seal.Failure.Reason != "InvalidArguments" || !strings.Contains(seal.Failure.Message, says) {
				t.Errorf("%+v", seal.Failure)
			}
		})
	}
}

func TestTerminationSealsPrintedTrials(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			requests, third := 0, make(chan struct{})
			slow := func(writer http.ResponseWriter, request *http.Request) {
				if requests++; requests < 3 {
					fmt.Fprint(writer, body)
					return
				}
				close(third)
				<-request.Context().Done()
			}
			var out bytes.Buffer
			log := filepath.Join(t.TempDir(), "log")
			command := process(t, &out, serving(t, slow, "trials=1-5", "readTimeoutMilliseconds=60000", "--output=json", "--termination-log="+log)...)
			<-third
			asked := time.Now()
			if err := command.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if code := exitCode(t, command); code != 143 {
				t.Errorf("exit code %d", code)
			}
			if took := time.Since(asked); took > soon {
				t.Errorf("the client ended after %v", took)
			}
			trials, seal := contracttest.Check(t, out.Bytes(), read(t, log))
			if len(trials) != 2 || seal.Failure == nil || seal.Failure.Reason != "Interrupted" {
				t.Errorf("%d trials, %+v", len(trials), seal)
			}
		})
	}
}

func TestTerminalOutputIsText(t *testing.T) {
	requests := 0
	once := func(writer http.ResponseWriter, _ *http.Request) {
		if requests++; requests == 1 {
			writer.WriteHeader(http.StatusBadGateway)
			return
		}
		fmt.Fprint(writer, body)
	}
	var out bytes.Buffer
	if code := exitCode(t, process(t, &out, serving(t, once, "trials=1-3")...)); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, part := range []string{"trial 1", "trial 3", "ServerError 1", "3 of 3 trials completed", "sample standard deviation"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is not in:\n%s", part, out.String())
		}
	}
}
