package agent

import (
	"testing"

	"tierbench.io/client/internal/agentclient"
	"tierbench.io/client/internal/agentclienttest"
)

func TestOnlyAuthorizedClientsTransferData(t *testing.T) {
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
			t.Errorf("%d bytes can be downloaded", size)
		}
		if _, err := client.Upload(t.Context(), size); err == nil {
			t.Errorf("%d bytes can be uploaded", size)
		}
	}
	other := agentclient.New(url, "another", pin)
	if _, err := other.Upload(t.Context(), 1<<20); err == nil {
		t.Error("a client with another token can upload")
	}
}
