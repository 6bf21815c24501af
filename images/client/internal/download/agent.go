package download

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"tierbench.io/client/internal/contract"
)

const (
	agentPatience = 30 * time.Second // before the first trial
	agentGrace    = 2 * time.Second  // before and after later ones
	agentPause    = 200 * time.Millisecond
)

// Agent is the one beside the server.
type Agent struct {
	URL, Token string
	met        bool
}

// Begin asks for the file's cache state and starts sampling. False: the agent, known before, does not answer now. The
// first time it must: a *contract.Failure says why it did not.
func (a *Agent) Begin(ctx context.Context, file, cacheState string) (bool, error) {
	body := map[string]string{"file": file, "cacheState": cacheState}
	err := a.persist(ctx, "begin", body, nil)
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
		message := fmt.Sprintf("the agent beside the server does not answer at %s: %v", a.URL, err)
		return false, fatal("AgentUnreachable", message)
	}
	return false, nil
}

// End stops sampling; nil if the agent does not answer: that never spoils a trial.
func (a *Agent) End(ctx context.Context) *contract.ServerSample {
	sample := &contract.ServerSample{}
	if err := a.persist(ctx, "end", nil, sample); err != nil {
		return nil
	}
	return sample
}

func (a *Agent) persist(ctx context.Context, action string, body, answer any) error {
	patience := agentPatience
	if a.met {
		patience = agentGrace
	}
	for deadline := time.Now().Add(patience); ; {
		err := a.call(ctx, action, body, answer)
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
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL+"/v1/"+action, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+a.Token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
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
