package agentclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// MostTransferred is the number of bytes of a transfer that measures a rate.
const MostTransferred = 32 << 20

const (
	transferLimit = 14 * time.Second // below the agent's limit for reading a request
	connections   = 11               // whose median is the round trip
	mostParts     = 9                // of a transfer whose rates are compared
	leastPart     = 64 << 10
)

// Taken is the answer to an upload.
type Taken struct {
	BytesPerSecond int64 `json:"bytesPerSecond"`
}

// RoundTrip returns the median time of several connections to the agent. It does not need its token.
func (a *Agent) RoundTrip(ctx context.Context) (time.Duration, error) {
	address, err := url.Parse(a.url)
	if err != nil {
		return 0, err
	}
	dialer, times := net.Dialer{Timeout: agentConnect}, []time.Duration{}
	for range connections {
		began := time.Now()
		connection, err := dialer.DialContext(ctx, "tcp", address.Host)
		took := time.Since(began)
		switch {
		case ctx.Err() != nil:
			return 0, context.Canceled
		case err != nil && len(times) == 0:
			return 0, err
		case err != nil:
			continue // packets were lost
		}
		times = append(times, took)
		_ = connection.Close()
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// Download returns the bytes per second at which the second half of a number of bytes comes from the agent.
func (a *Agent) Download(ctx context.Context, size int64) (int64, error) {
	limited, cancel := context.WithTimeout(ctx, transferLimit)
	defer cancel()
	response, err := a.post(limited, "give", map[string]int64{"bytes": size})
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return Rate(response.Body, size)
}

// Upload returns the bytes per second at which the second half of a number of bytes comes to the agent.
func (a *Agent) Upload(ctx context.Context, size int64) (int64, error) {
	limited, cancel := context.WithTimeout(ctx, transferLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(limited, http.MethodPost, a.url+"/v1/take", io.LimitReader(zeros{}, size))
	if err != nil {
		return 0, err
	}
	request.ContentLength = size
	request.Header.Set("Authorization", "Bearer "+a.token)
	response, err := a.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	var taken Taken
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the agent answers %s", response.Status)
	}
	err = json.NewDecoder(io.LimitReader(response.Body, mostBytes)).Decode(&taken)
	return taken.BytesPerSecond, err
}

// Rate reads a number of bytes, and returns the bytes per second of the second half: the first half contains TCP's slow
// start. It is the median of several parts of that half, because a reader that waited for a processor reads at once
// what has arrived meanwhile.
func Rate(reader io.Reader, size int64) (int64, error) {
	return rate(reader, size, time.Now)
}

func rate(reader io.Reader, size int64, now func() time.Time) (int64, error) {
	part := max((size-size/2)/mostParts, leastPart)
	block := make([]byte, leastPart)
	var received, before int64
	var began time.Time
	var rates []float64
	for received < size {
		count, err := reader.Read(block)
		received += int64(count)
		if err != nil && received < size {
			return 0, fmt.Errorf("after %d of %d bytes: %w", received, size, err)
		}
		if received < size/2 || !began.IsZero() && received < before+part && received < size {
			continue
		}
		read := now()
		if took := read.Sub(began); !began.IsZero() && took > 0 {
			rates = append(rates, float64(received-before)/took.Seconds())
		}
		began, before = read, received
	}
	if len(rates) == 0 {
		return 0, errors.New("the bytes came all at once: send more")
	}
	slices.Sort(rates)
	return int64(rates[len(rates)/2]), nil
}

type zeros struct{}

func (zeros) Read(block []byte) (int, error) {
	clear(block)
	return len(block), nil
}
