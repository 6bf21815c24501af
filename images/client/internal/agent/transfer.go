package agent

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"tierbench.io/client/internal/agentclient"
)

// give sends bytes, so that a client can measure the rate of its link.
func (a *Agent) give(writer http.ResponseWriter, request *http.Request) {
	asked := struct {
		Bytes int64 `json:"bytes"`
	}{}
	if err := json.NewDecoder(request.Body).Decode(&asked); err != nil || asked.Bytes < 1 || asked.Bytes > agentclient.MostTransferred {
		refuse(writer, http.StatusBadRequest, "BadRequest", fmt.Sprintf("bytes: write 1 to %d", agentclient.MostTransferred))
		return
	}
	writer.Header().Set("Content-Length", strconv.FormatInt(asked.Bytes, 10))
	block := make([]byte, 64<<10)
	for left := asked.Bytes; left > 0; left -= int64(len(block)) {
		if _, err := writer.Write(block[:min(left, int64(len(block)))]); err != nil {
			return // the client has disconnected
		}
	}
}

// take receives bytes, and answers with their rate.
func (a *Agent) take(writer http.ResponseWriter, request *http.Request) {
	if request.ContentLength < 1 || request.ContentLength > agentclient.MostTransferred {
		refuse(writer, http.StatusBadRequest, "BadRequest", fmt.Sprintf("the request has %d bytes: send 1 to %d", request.ContentLength, agentclient.MostTransferred))
		return
	}
	rate, err := agentclient.Rate(request.Body, request.ContentLength)
	if err != nil {
		refuse(writer, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	answer(writer, agentclient.Taken{BytesPerSecond: rate})
}
