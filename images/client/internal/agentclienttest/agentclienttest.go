// Package agentclienttest starts what answers as an agent does.
package agentclienttest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"tierbench.io/client/internal/pinned"
)

// Serve answers over TLS until the test ends; the pin is that of its key.
func Serve(t *testing.T, handler http.Handler) (url, pin string) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	return server.URL, pinned.Of(server.Certificate().RawSubjectPublicKeyInfo)
}
