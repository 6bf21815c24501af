package collect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"tierbench.io/client/internal/pinned"
)

const (
	pieceBytes  = 64 << 10 // of a request
	answerBytes = 4 << 10
	connect     = 5 * time.Second
	request     = 20 * time.Second
)

// Collector is where the operator receives the lines of one client.
type Collector struct {
	url, token string
	client     *http.Client
	Pause      time.Duration // between requests without progress
	Timeout    time.Duration // until the first answer
}

// New returns the collector at url. The pin identifies its key, and the token authenticates the client.
func New(url, token, pin string) *Collector {
	transport := &http.Transport{
		DialContext: (&net.Dialer{Timeout: connect}).DialContext, TLSClientConfig: pinned.Client(pin), TLSHandshakeTimeout: connect,
		DisableKeepAlives: true, // the operator's Service may lead to a standby, and a connection stays with it
	}
	return &Collector{url, token, &http.Client{Transport: transport, Timeout: request}, time.Second, 30 * time.Second}
}

// answer is what the operator has of a client. A restarted operator has only the recorded trials.
type answer struct {
	Wanted   bool  `json:"wanted"`   // whether the lines arrive in no other way
	Received int64 `json:"received"` // bytes, from the first one on
	Recorded int   `json:"recorded"` // trials that are stored
}

// Deliver returns when the operator has recorded the trials of a spool, or reads them from the log. It gives up without
// an answer, or when ctx ends.
func (c *Collector) Deliver(ctx context.Context, spool *Spool, trials int) error {
	var known answer
	var met bool
	started := time.Now()
	for {
		found, err := c.send(ctx, spool, known.Received, known.Wanted)
		switch {
		case err != nil && (ctx.Err() != nil || !met && time.Since(started) > c.Timeout):
			return fmt.Errorf("the lines could not be delivered to %s: %w", c.url, err)
		case err == nil && (!found.Wanted || found.Recorded >= trials):
			return nil
		case err == nil:
			further := !met || found.Received > known.Received
			known, met = found, true
			if further && found.Received < spool.Size() {
				continue
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the lines could not be delivered to %s: %w", c.url, ctx.Err())
		case <-time.After(c.Pause):
		}
	}
}

// send sends the next piece, or nothing if it is not wanted yet, or all was sent.
func (c *Collector) send(ctx context.Context, spool *Spool, offset int64, wanted bool) (answer, error) {
	var found answer
	var piece []byte
	if wanted {
		var err error
		if piece, err = spool.piece(offset); err != nil {
			return found, err
		}
	}
	asked, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s?offset=%d", c.url, offset), bytes.NewReader(piece))
	if err != nil {
		return found, err
	}
	asked.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.client.Do(asked)
	if err != nil {
		return found, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerBytes))
	if err != nil {
		return found, err
	}
	if response.StatusCode != http.StatusOK {
		return found, fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(body))
	}
	return found, json.Unmarshal(body, &found)
}
