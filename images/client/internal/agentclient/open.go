package agentclient

import (
	"context"
	"errors"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/wait"
)

// ServerNotStarted is the reason with which an agent refuses to open a gate before the server listens.
const ServerNotStarted = "ServerNotStarted"

// Open lets the server behind a gate listen until shut is called or this program ends, because the agent watches the connection.
func (a *Agent) Open(ctx context.Context, gate int) (shut func(), err error) {
	for deadline := time.Now().Add(a.Opening); ; {
		if shut, err = a.open(ctx, gate); err == nil {
			return shut, nil
		}
		var refused *contract.Failure
		final := errors.As(err, &refused) && refused.Reason != ServerNotStarted
		if final || time.Now().After(deadline) || wait.For(ctx, agentPause) != nil {
			return nil, a.explain(ctx, err)
		}
	}
}

func (a *Agent) open(ctx context.Context, gate int) (shut func(), err error) {
	held, release := context.WithCancel(ctx)
	tooLong := time.AfterFunc(a.Opening, release)
	defer tooLong.Stop()
	response, err := a.post(held, "open", map[string]int{"gate": gate})
	if err != nil {
		release()
		return nil, err
	}
	return func() {
		release()
		response.Body.Close()
	}, nil
}
