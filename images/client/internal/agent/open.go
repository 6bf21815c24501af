package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"

	"tierbench.io/client/internal/agentclient"
	"tierbench.io/client/internal/gate"
)

// open holds a gate for as long as its client is connected. It answers once, when the server listens.
func (a *Agent) open(writer http.ResponseWriter, request *http.Request) {
	asked := struct {
		Gate *uint16 `json:"gate"`
	}{}
	if err := json.NewDecoder(request.Body).Decode(&asked); err != nil || asked.Gate == nil || a.options.Gates == "" {
		refuse(writer, http.StatusBadRequest, "BadRequest", "the request needs the number of a gate, and the agent --gates")
		return
	}
	held, err := gate.Hold(request.Context(), filepath.Join(a.options.Gates, strconv.Itoa(int(*asked.Gate))))
	if err != nil {
		refuse(writer, http.StatusServiceUnavailable, agentclient.ServerNotStarted, fmt.Sprintf("no server listens behind gate %d: %v: see its log", *asked.Gate, err))
		return
	}
	defer held.Close()
	defer context.AfterFunc(request.Context(), func() { held.Close() })()
	writer.WriteHeader(http.StatusOK)
	if http.NewResponseController(writer).Flush() == nil {
		_, _ = io.Copy(io.Discard, held)
	}
}
