// Package outside lets machines outside the cluster measure: a member asks the operator for work, measures, and delivers its
// lines. In the cluster a stand-in offers the work, and prints what the member has measured as if it had measured it.
package outside

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
)

const (
	pieceBytes  = 32 << 10
	answerBytes = 1 << 20
	connect     = 5 * time.Second
	request     = 20 * time.Second
	pause       = 2 * time.Second
)

// refused is an answer of the operator that another request does not change.
type refused struct {
	status int
	text   string
}

func (r *refused) Error() string { return fmt.Sprintf("the operator refuses: %s", r.text) }

// caller sends requests to the collector of an operator.
type caller struct {
	url, token string
	client     *http.Client
	ahead      time.Duration // of this machine's clock, by the last answer
}

func newCaller(url, token, pin string) *caller {
	transport := &http.Transport{
		DialContext: (&net.Dialer{Timeout: connect}).DialContext, TLSClientConfig: pinned.Client(pin), TLSHandshakeTimeout: connect,
		DisableKeepAlives: true, // the operator closes connections, and another one may lead
	}
	return &caller{url: url, token: token, client: &http.Client{Transport: transport, Timeout: request}}
}

// post sends a request, and returns the status of its answer. A *refused is not worth a repetition.
func (c *caller) post(ctx context.Context, path string, body, answer any) (int, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	asked, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(encoded))
	if err != nil {
		return 0, err
	}
	asked.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.client.Do(asked)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if served, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		c.ahead = time.Since(served)
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, answerBytes))
	switch status := response.StatusCode; {
	case err != nil:
		return status, err
	case status == http.StatusOK || status == http.StatusAccepted:
		return status, json.Unmarshal(content, answer)
	case status >= http.StatusInternalServerError || status == http.StatusNotFound:
		return status, fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(content))
	default:
		return status, &refused{status, string(bytes.TrimSpace(content))}
	}
}

// rest waits until the next request. It returns false if ctx ends before.
func rest(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// end is how a member ended its work.
type end struct {
	Engine  contract.Engine   `json:"engine"`
	Failure *contract.Failure `json:"failure,omitempty"`
}

// endOf returns how work ended with an error.
func endOf(engine contract.Engine, err error) end {
	var failure *contract.Failure
	switch {
	case err == nil:
	case errors.As(err, &failure):
	case errors.Is(err, context.Canceled):
		failure = interrupted("the member received a signal to terminate")
	default:
		failure = &contract.Failure{Reason: "ClientError", Message: err.Error()}
	}
	return end{engine, failure.Cut()}
}

func interrupted(message string) *contract.Failure {
	return &contract.Failure{Reason: "Interrupted", Message: message}
}
