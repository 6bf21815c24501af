// Package agentclient sends the requests of a client to the agent of a server.
package agentclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/pinned"
	"tierbench.io/client/internal/wait"
)

const (
	agentPause     = 200 * time.Millisecond // between requests that fail
	agentConnect   = 2 * time.Second
	agentHandshake = 10 * time.Second
	agentCaching   = 30 * time.Minute // for a large file to be read from a slow card into memory
	agentMeeting   = 30 * time.Second // the agent answers earlier, and says to ask again
	mostBytes      = 16 << 20         // of an answer
)

// Agent is the client of the agent of a server.
type Agent struct {
	url, token string
	client     *http.Client
	met        bool          // whether it has answered before
	Timeout    time.Duration // for the first answer
	Grace      time.Duration // for later answers
	Opening    time.Duration // for a server to listen
}

// New returns a client of the agent at url. The pin identifies its key, and the token authenticates the client.
func New(url, token, pin string) *Agent {
	dialer := net.Dialer{Timeout: agentConnect}
	transport := &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: pinned.Client(pin), TLSHandshakeTimeout: agentHandshake}
	return &Agent{url: url, token: token, client: &http.Client{Transport: transport}, Timeout: 30 * time.Second, Grace: 5 * time.Second, Opening: 30 * time.Second}
}

// Begin requests the cache state of the file and starts sampling. It returns false if the agent answered before, and does
// not answer now. If it never answered, the error is a *contract.Failure.
func (a *Agent) Begin(ctx context.Context, file, cacheState string) (bool, error) {
	limit := a.Timeout
	if cacheState != "Unchanged" {
		limit = agentCaching
	}
	return a.begin(ctx, limit, map[string]any{"file": file, "cacheState": cacheState})
}

// BeginTracing starts sampling without a file. With an interval above 0 it also samples TCP, of as many connections as there are
// senders, those that send most.
func (a *Agent) BeginTracing(ctx context.Context, interval time.Duration, senders int) (bool, error) {
	return a.begin(ctx, a.Timeout, map[string]any{"traceMilliseconds": interval.Milliseconds(), "senders": senders})
}

func (a *Agent) begin(ctx context.Context, limit time.Duration, body any) (bool, error) {
	err := a.persist(ctx, "begin", limit, body, nil)
	var refused *contract.Failure
	switch {
	case err == nil:
		a.met, a.Timeout = true, a.Grace
		return true, nil
	case a.met && ctx.Err() == nil && !errors.As(err, &refused):
		return false, nil
	}
	return false, a.explain(ctx, err)
}

// explain returns context.Canceled, or a *contract.Failure.
func (a *Agent) explain(ctx context.Context, err error) error {
	var refused *contract.Failure
	switch {
	case ctx.Err() != nil:
		return context.Canceled
	case errors.As(err, &refused):
		return refused
	}
	message := fmt.Sprintf("the agent of the server does not answer at %s (%v): check whether its container runs", a.url, err)
	return &contract.Failure{Reason: "AgentUnreachable", Message: message}
}

// Ending is what the agent measured in a trial.
type Ending struct {
	contract.ServerSample
	TCP   *contract.TCPActivity `json:"tcp,omitempty"`
	Trace string                `json:"trace,omitempty"`
}

// End stops sampling. It returns nil if the agent does not answer, as a trial does not fail for this.
func (a *Agent) End(ctx context.Context) *contract.ServerSample {
	ending := a.EndTracing(ctx)
	if ending == nil {
		return nil
	}
	return &ending.ServerSample
}

// EndTracing stops sampling, and returns the samples of TCP if tracing was requested.
func (a *Agent) EndTracing(ctx context.Context) *Ending {
	ending := &Ending{}
	if err := a.persist(ctx, "end", a.Grace, nil, ending); err != nil {
		return nil
	}
	return ending
}

// Meet waits until all parts have reached a barrier, or until the timeout. A repeated request joins again, so the agent may
// restart.
func (a *Agent) Meet(ctx context.Context, barrier string, part, parts int, timeout time.Duration) error {
	body := map[string]any{"name": barrier, "part": part, "parts": parts}
	var answer struct {
		Open    bool  `json:"open"`
		Missing []int `json:"missing"`
	}
	for deadline := time.Now().Add(timeout); !answer.Open; {
		err := a.persist(ctx, "barrier", agentMeeting, body, &answer)
		var refused *contract.Failure
		switch {
		case ctx.Err() != nil:
			return context.Canceled
		case errors.As(err, &refused):
			return refused
		case err == nil && answer.Open:
			return nil
		case time.Now().After(deadline):
			message := fmt.Sprintf("%[2]v of %[1]d parts of the client did not reach %[3]s within %[4]v: see the events of their pods", parts, answer.Missing, barrier, timeout)
			return &contract.Failure{Reason: "BarrierTimedOut", Message: message}
		}
	}
	return nil
}

// persist retries a request until it is answered, or until the timeout. limit is the timeout of one request.
func (a *Agent) persist(ctx context.Context, action string, limit time.Duration, body, answer any) error {
	for deadline := time.Now().Add(a.Timeout); ; {
		limited, cancel := context.WithTimeout(ctx, limit)
		err := a.call(limited, action, body, answer)
		cancel()
		var refused *contract.Failure
		if err == nil || errors.As(err, &refused) || time.Now().After(deadline) || wait.For(ctx, agentPause) != nil {
			return err
		}
	}
}

func (a *Agent) call(ctx context.Context, action string, body, answer any) error {
	response, err := a.post(ctx, action, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, mostBytes))
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(content, answer)
}

// post returns a response with an unread body. A refusal of the agent is a *contract.Failure.
func (a *Agent) post(ctx context.Context, action string, body any) (*http.Response, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/v1/"+action, bytes.NewReader(encoded))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := a.client.Do(request)
	if err != nil || response.StatusCode == http.StatusOK || response.StatusCode == http.StatusAccepted {
		return response, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, mostBytes))
	if err != nil {
		return nil, err
	}
	failure := &contract.Failure{}
	if json.Unmarshal(content, failure) != nil || failure.Reason == "" {
		return nil, fmt.Errorf("the agent answers %s", response.Status)
	}
	return nil, failure
}
