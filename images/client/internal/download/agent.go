package download

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
)

const (
	agentPatience = 30 * time.Second       // until it is reached before the first trial
	agentGrace    = 5 * time.Second        // the same before and after later ones
	agentPause    = 200 * time.Millisecond // between requests
	agentConnect  = 2 * time.Second
	agentCaching  = 30 * time.Minute // for a large file from a slow card to be read into memory
)

// Agent is the one beside the server.
type Agent struct {
	url, token string
	client     *http.Client
	met        bool
}

// NewAgent knows the agent at url, and the token that it asks for.
func NewAgent(url, token string) *Agent {
	dialer := net.Dialer{Timeout: agentConnect}
	return &Agent{url: url, token: token, client: &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}}
}

// Begin asks for the file's cache state and starts sampling. False: the agent, known before, does not answer now. The
// first time it must: a *contract.Failure says why it did not.
func (a *Agent) Begin(ctx context.Context, file, cacheState string) (bool, error) {
	body := map[string]string{"file": file, "cacheState": cacheState}
	patience, answering := agentPatience, agentPatience
	if a.met {
		patience, answering = agentGrace, agentGrace
	}
	if cacheState != "Natural" {
		answering = agentCaching
	}
	err := a.persist(ctx, "begin", patience, answering, body, nil)
	var refused *contract.Failure
	switch {
	case err == nil:
		a.met = true
		return true, nil
	case ctx.Err() != nil:
		return false, context.Canceled
	case errors.As(err, &refused):
		return false, refused
	case !a.met:
		message := fmt.Sprintf("the agent beside the server does not answer at %s: %v: does it run?", a.url, err)
		return false, fatal("AgentUnreachable", message)
	}
	return false, nil
}

// End stops sampling; nil if the agent does not answer: that never spoils a trial.
func (a *Agent) End(ctx context.Context) *contract.ServerSample {
	sample := &contract.ServerSample{}
	if err := a.persist(ctx, "end", agentGrace, agentGrace, nil, sample); err != nil {
		return nil
	}
	return sample
}

// persist asks until it is answered, or patience is at an end; each request may take as long as answering says.
func (a *Agent) persist(ctx context.Context, action string, patience, answering time.Duration, body, answer any) error {
	for deadline := time.Now().Add(patience); ; {
		limit, cancel := context.WithTimeout(ctx, answering)
		err := a.call(limit, action, body, answer)
		cancel()
		var refused *contract.Failure
		if err == nil || errors.As(err, &refused) || time.Now().After(deadline) || sleep(ctx, agentPause) != nil {
			return err
		}
	}
}

func (a *Agent) call(ctx context.Context, action string, body, answer any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/v1/"+action, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := a.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		failure := &contract.Failure{}
		if json.Unmarshal(content, failure) != nil || failure.Reason == "" {
			return fmt.Errorf("the agent answers %s", response.Status)
		}
		return failure
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(content, answer)
}
