package agent

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"tierbench.io/client/internal/agentclient"
	"tierbench.io/client/internal/agentclienttest"
)

// slow lets bytes pass at a rate, after as many as a start has.
type slow struct {
	io.Reader

	began time.Time
	read  int
}

const perSecond = 1 << 20

func (s *slow) Read(block []byte) (int, error) {
	count, err := s.Reader.Read(block[:min(len(block), 8<<10)])
	s.read += count
	time.Sleep(time.Until(s.began.Add(time.Duration(s.read) * time.Second / perSecond)))
	return count, err
}

func TestRateIsThatOfTheSecondHalf(t *testing.T) {
	const size = perSecond / 2
	reader := &slow{Reader: strings.NewReader(strings.Repeat("x", size)), began: time.Now()}
	rate, err := agentclient.Rate(reader, size)
	if err != nil || rate > perSecond*11/10 {
		t.Errorf("%d, %v", rate, err)
	}
	if _, err := agentclient.Rate(iotest.TimeoutReader(strings.NewReader("short")), size); err == nil {
		t.Error("a transfer that ended early has a rate")
	}
}

func TestAgentMeasuresTransfersOfClientsAlone(t *testing.T) {
	made, err := New(Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	url, pin := agentclienttest.Serve(t, made.Handler())
	client := agentclient.New(url, token, pin)
	for name, transfer := range map[string]func() (int64, error){
		"up":   func() (int64, error) { return client.Upload(t.Context(), 1<<20) },
		"down": func() (int64, error) { return client.Download(t.Context(), 1<<20) },
	} {
		if rate, err := transfer(); err != nil || rate <= 0 {
			t.Errorf("%s: %d, %v", name, rate, err)
		}
	}
	if took, err := client.RoundTrip(t.Context()); err != nil || took <= 0 {
		t.Errorf("%v, %v", took, err)
	}
	for _, size := range []int64{0, agentclient.MostTransferred + 1} {
		if _, err := client.Download(t.Context(), size); err == nil {
			t.Errorf("%d bytes are given", size)
		}
		if _, err := client.Upload(t.Context(), size); err == nil {
			t.Errorf("%d bytes are taken", size)
		}
	}
	stranger := agentclient.New(url, "another", pin)
	if _, err := stranger.Upload(t.Context(), 1<<20); err == nil {
		t.Error("a stranger may upload")
	}
}
