// Package agentclienttest starts servers that answer like an agent.
package agentclienttest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"tierbench.io/client/internal/pinned"
)

// Serve serves the handler over TLS until the test ends. The pin identifies its key.
func Serve(t *testing.T, handler http.Handler) (url, pin string) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	return server.URL, pinned.Of(server.Certificate().RawSubjectPublicKeyInfo)
}
