package agent

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"tierbench.io/client/internal/agentclient"
	"tierbench.io/client/internal/computer"
	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/tcptrace"
)

const (
	mostBytes   = 64 << 10         // of a request
	untilAsked  = 15 * time.Second // from a connection to its request, and its token
	betweenAsks = 2 * time.Minute
)

// Options are the options of an agent.
type Options struct {
	Listen    string
	TLS       *tls.Config
	Token     string
	Directory string          // of the served files; empty: none
	Process   string          // name of the server's process, whose CPU time is sampled; empty: none
	Ports     map[uint16]bool // of the server
	Gates     string          // folder of the gates of servers that listen only for their clients; empty: none
	Interval  time.Duration   // between samples of round trips
}

// trial is a trial that is being sampled.
type trial struct {
	before     moment
	meter      *computer.Meter
	resident   *int64
	available  *int64 // bytes of memory, before the file was brought into its state
	file       string
	roundTrips *roundTrips
	recorder   *tcptrace.Recorder // nil: TCP is not traced
}

// Agent answers the begin and end requests of a client for each trial.
type Agent struct {
	options      Options
	root         *os.Root
	disk         device
	mutex        sync.Mutex
	current      *trial
	barriers     barriers
	unauthorized unauthorized
}

// New opens the directory, if one is named.
func New(options Options) (*Agent, error) {
	if options.Directory == "" {
		return &Agent{options: options}, nil
	}
	root, err := os.OpenRoot(options.Directory)
	if err != nil {
		return nil, fmt.Errorf("--directory: %w", err)
	}
	disk, err := deviceOf(options.Directory)
	if err != nil {
		return nil, fmt.Errorf("--directory: %w", err)
	}
	return &Agent{options: options, root: root, disk: disk}, nil
}

// Serve answers requests until ctx is done.
func (a *Agent) Serve(ctx context.Context) error {
	listener, err := net.Listen("tcp", a.options.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	server := a.server()
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// server returns the HTTP server. Before it has seen a token, it accepts no more from a connection than clients send.
func (a *Agent) server() *http.Server {
	return &http.Server{
		Handler: a.Handler(), TLSConfig: a.options.TLS, ReadTimeout: untilAsked, IdleTimeout: betweenAsks, MaxHeaderBytes: mostBytes,
		ConnState: a.unauthorized.follow, ConnContext: withConnection,
	}
}

// Handler returns the agent's HTTP interface.
func (a *Agent) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(writer http.ResponseWriter, _ *http.Request) { writer.WriteHeader(http.StatusOK) })
	mux.HandleFunc("POST /v1/begin", a.authorized(a.begin))
	mux.HandleFunc("POST /v1/end", a.authorized(a.end))
	mux.HandleFunc("POST /v1/barrier", a.authorized(a.meet))
	mux.HandleFunc("POST /v1/open", a.authorized(a.open))
	mux.HandleFunc("POST /v1/give", a.authorized(a.give))
	all := http.NewServeMux()
	all.Handle("/", http.MaxBytesHandler(mux, mostBytes))
	all.HandleFunc("POST /v1/take", a.authorized(a.take))
	return all
}

func (a *Agent) authorized(next http.HandlerFunc) http.HandlerFunc {
	wanted := []byte("Bearer " + a.options.Token)
	return func(writer http.ResponseWriter, request *http.Request) {
		if subtle.ConstantTimeCompare([]byte(request.Header.Get("Authorization")), wanted) != 1 {
			refuse(writer, http.StatusUnauthorized, "TokenRefused", "the agent has another token: check the Secret of this benchmark")
			return
		}
		a.unauthorized.authorize(request)
		next(writer, request)
	}
}

const mostTraceMilliseconds = 60_000 // as a NetworkBenchmark allows

type beginning struct {
	File              string `json:"file"`
	CacheState        string `json:"cacheState"`
	TraceMilliseconds int64  `json:"traceMilliseconds"`
	Senders           int    `json:"senders"`
}

// begin brings the file into the requested state and starts sampling. It forgets a trial that did not end.
func (a *Agent) begin(writer http.ResponseWriter, request *http.Request) {
	var asked beginning
	if err := json.NewDecoder(request.Body).Decode(&asked); err != nil {
		refuse(writer, http.StatusBadRequest, "BadRequest", "the request is no JSON object with file and cacheState: "+err.Error())
		return
	}
	if asked.File != "" && !filepath.IsLocal(asked.File) {
		refuse(writer, http.StatusBadRequest, "BadRequest", fmt.Sprintf("file is %q: write a name within the agent's --directory", asked.File))
		return
	}
	if asked.TraceMilliseconds < 0 || asked.TraceMilliseconds > mostTraceMilliseconds || asked.Senders < 0 {
		message := "traceMilliseconds is %d and senders is %d: write at most %d milliseconds, and no negative number"
		refuse(writer, http.StatusBadRequest, "BadRequest", fmt.Sprintf(message, asked.TraceMilliseconds, asked.Senders, mostTraceMilliseconds))
		return
	}
	change, known := changes[asked.CacheState]
	if !known {
		refuse(writer, http.StatusBadRequest, "BadRequest", fmt.Sprintf("cacheState is %q: write Unchanged, Warm or Cold", asked.CacheState))
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.forget()
	started := &trial{file: asked.File, available: computer.Own().MemoryAvailable()}
	if asked.File != "" && a.root == nil {
		refuse(writer, http.StatusBadRequest, "BadRequest", "file is "+asked.File+", and this agent has no --directory of files")
		return
	}
	if asked.File != "" {
		resident, err := a.prepare(request.Context(), asked.File, change)
		switch {
		case errors.Is(err, os.ErrNotExist):
			refuse(writer, http.StatusNotFound, "FileNotFound", fmt.Sprintf("there is no file %q in the agent's --directory", asked.File))
			return
		case err != nil:
			refuse(writer, http.StatusUnprocessableEntity, "CacheStateFailed", fmt.Sprintf("file %q, cache state %q: %v", asked.File, asked.CacheState, err))
			return
		}
		started.resident = &resident
	}
	started.meter = computer.Host().Watch()
	started.before = a.look()
	started.roundTrips = sampleRoundTrips(a.options.Ports, a.options.Interval)
	if asked.TraceMilliseconds > 0 {
		interval := time.Duration(asked.TraceMilliseconds) * time.Millisecond
		started.recorder = tcptrace.Start(tcptrace.Ports{Local: a.options.Ports}, asked.Senders, interval)
	}
	a.current = started
	answer(writer, map[string]*int64{"residentPartsPerMillion": started.resident})
}

func (a *Agent) forget() {
	if a.current != nil {
		a.current.roundTrips.end()
		a.current.traced()
		a.current = nil
	}
}

// changes bring a file into each cache state. They end when their client disconnects, so that the next client need not wait.
var changes = map[string]func(context.Context, *os.File) error{
	"":          leave,
	"Unchanged": leave,
	"Warm":      warm,
	"Cold":      cool,
}

func leave(context.Context, *os.File) error { return nil }

func (a *Agent) prepare(ctx context.Context, name string, change func(context.Context, *os.File) error) (int64, error) {
	file, err := a.root.Open(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if err := change(ctx, file); err != nil {
		return 0, err
	}
	return residentPartsPerMillion(file)
}

// end answers with what happened since begin.
func (a *Agent) end(writer http.ResponseWriter, request *http.Request) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.current == nil {
		refuse(writer, http.StatusConflict, "NoTrial", "no trial has begun, or the agent was restarted since")
		return
	}
	ended := a.current
	after := a.look()
	sample := between(ended.before, after)
	sample.Computer = ended.meter.End(localAddress(request))
	sample.MemoryAvailableBytes = ended.available
	if pid, _, found := busiest(ended.before.processes, after.processes); found {
		sample.Computer.QuotaThrottledNanoseconds = computer.Grown(ended.before.processes[pid].throttled, after.processes[pid].throttled)
		sample.CPULimitMillicores = known(computer.Other(pid).CPULimit())
	}
	sample.RoundTripNanoseconds, sample.RoundTripMaxNanoseconds = ended.roundTrips.end()
	a.current = nil
	sample.ResidentBeforePartsPerMillion = ended.resident
	if ended.file != "" {
		if resident, err := a.prepare(request.Context(), ended.file, leave); err == nil {
			sample.ResidentAfterPartsPerMillion = &resident
		}
	}
	activity, trace := ended.traced()
	answer(writer, agentclient.Ending{ServerSample: sample, TCP: activity, Trace: trace})
}

// localAddress returns the address at which the client's request arrived. The load arrives at the same interface.
func localAddress(request *http.Request) net.Addr {
	address, _ := request.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return address
}

// known returns nil for a limit of 0, which means that the kernel reports none.
func known(limit int64) *int64 {
	if limit == 0 {
		return nil
	}
	return &limit
}

// traced ends the tracing of TCP. It returns the activity, and the trace as text.
func (t *trial) traced() (*contract.TCPActivity, string) {
	if t.recorder == nil {
		return nil, ""
	}
	activity, trace := t.recorder.End()
	if trace == nil {
		return nil, ""
	}
	return activity, trace.Encode()
}

func answer(writer http.ResponseWriter, body any) {
	writer.Header().Set("Content-Type", "application/json")
	// An error here means that the client has disconnected. It will ask again.
	_ = json.NewEncoder(writer).Encode(body)
}

func refuse(writer http.ResponseWriter, status int, reason, message string) {
	writer.Header().Set("Content-Type", "application/json")
	writer.WriteHeader(status)
	_ = json.NewEncoder(writer).Encode(contract.Failure{Reason: reason, Message: message})
}
