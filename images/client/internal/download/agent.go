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
	agentPause   = 200 * time.Millisecond // between requests that fail
	agentConnect = 2 * time.Second
	agentCaching = 30 * time.Minute // for a large file to be read from a slow card into memory
)

// Agent is the one beside the server.
type Agent struct {
	url, token string
	client     *http.Client
	met        bool          // it has answered before
	patience   time.Duration // until it answers
	grace      time.Duration // the same once it has
}

// NewAgent knows the agent at url, and the token that it asks for.
func NewAgent(url, token string) *Agent {
	dialer := net.Dialer{Timeout: agentConnect}
	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
	return &Agent{url: url, token: token, client: client, patience: 30 * time.Second, grace: 5 * time.Second}
}

// Begin asks for the file's cache state and starts sampling. False: the agent, known before, does not answer now. The
// first time it must: a *contract.Failure says why it did not.
func (a *Agent) Begin(ctx context.Context, file, cacheState string) (bool, error) {
	body := map[string]string{"file": file, "cacheState": cacheState}
	limit := a.patience
	if cacheState != "Natural" {
		limit = agentCaching
	}
	err := a.persist(ctx, "begin", limit, body, nil)
	var refused *contract.Failure
	switch {
	case err == nil:
		a.met, a.patience = true, a.grace
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
	if err := a.persist(ctx, "end", a.grace, nil, sample); err != nil {
		return nil
	}
	return sample
}

// persist asks until it is answered, or patience is at an end; a single request may take as long as limit says.
func (a *Agent) persist(ctx context.Context, action string, limit time.Duration, body, answer any) error {
	for deadline := time.Now().Add(a.patience); ; {
		limited, cancel := context.WithTimeout(ctx, limit)
		err := a.call(limited, action, body, answer)
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
