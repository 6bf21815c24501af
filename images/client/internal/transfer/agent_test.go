package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"tierbench.io/client/internal/agentclient"
	"tierbench.io/client/internal/agentclienttest"
	"tierbench.io/client/internal/contract"
)

const token = "secret"

// agentThat starts an agent that answers by `answer`, and returns a client for it.
func agentThat(t *testing.T, answer http.HandlerFunc) *agentclient.Agent {
	t.Helper()
	url, pin := agentclienttest.Serve(t, answer)
	agent := agentclient.New(url, token, pin)
	agent.Timeout, agent.Grace = time.Minute, time.Minute
	return agent
}

func TestAgentIsCalledOutsideTheTimedTrial(t *testing.T) {
	var asked []string
	var prepared, sampled []time.Time
	_, options := faulty(t, func(int, http.ResponseWriter, *http.Request) bool {
		asked = append(asked, "download")
		return false
	})
	options.CacheState, options.Last = "Warm", 2
	options.Agent = agentThat(t, func(writer http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		asked = append(asked, request.Method+" "+request.URL.Path)
		if request.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("%v", request.Header)
		}
		if request.URL.Path == "/v1/end" {
			sampled = append(sampled, time.Now())
			fmt.Fprint(writer, `{"residentBeforePartsPerMillion":1000000,"tcpRetransmits":0}`)
			return
		}
		var begin map[string]string
		if err := json.Unmarshal(body, &begin); err != nil || begin["file"] != "file.bin" || begin["cacheState"] != "Warm" {
			t.Errorf("%s: %v", body, err)
		}
		prepared = append(prepared, time.Now())
		fmt.Fprint(writer, `{}`)
	})
	trials := run(t, options)
	if want := "[POST /v1/begin download POST /v1/end POST /v1/begin download POST /v1/end]"; fmt.Sprint(asked) != want {
		t.Errorf("%v, want %s", asked, want)
	}
	for index, trial := range trials {
		started, err := time.Parse(time.RFC3339Nano, trial.StartTime)
		ended := started.Add(time.Duration(trial.DurationNanoseconds))
		if err != nil || started.Before(prepared[index]) || ended.After(sampled[index]) {
			t.Errorf("the clock ran from %v to %v, the agent was ready at %v and asked at %v", started, ended, prepared[index], sampled[index])
		}
		server := trial.Server
		if server == nil || *server.ResidentBeforePartsPerMillion != 1_000_000 || *server.TCPRetransmits != 0 || server.DeviceReadBytes != nil {
			t.Errorf("%+v", server)
		}
	}
}

func TestAgentThatNeverAnswersEndsTheSeries(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // accepts connections, and answers none
	for name, address := range map[string]string{"silent": listener.Addr().String(), "absent": "127.0.0.1:1"} {
		t.Run(name, func(t *testing.T) {
			server, options := faulty(t, honest)
			options.Agent = agentclient.New("https://"+address, token, "")
			options.Agent.Timeout = 300 * time.Millisecond
			var failure *contract.Failure
			if err := options.run(context.Background(), &collected{}); !errors.As(err, &failure) || failure.Reason != "AgentUnreachable" {
				t.Errorf("%v", err)
			}
			server.expectRanges(t)
		})
	}
}

func TestLateAgentIsAwaited(t *testing.T) {
	requests := 0
	_, options := faulty(t, honest)
	options.Agent = agentThat(t, func(writer http.ResponseWriter, _ *http.Request) {
		if requests++; requests < 3 {
			writer.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(writer, "{}")
	})
	trial := run(t, options)[0]
	completed(t, trial)
	if trial.Server == nil {
		t.Error("the sample of the server is missing")
	}
}

func TestAgentLostLaterFailsNoTrial(t *testing.T) {
	hang := func(request *http.Request) { <-request.Context().Done() }
	for name, lose := range map[string]func(http.ResponseWriter, *http.Request){
		"hangs":  func(_ http.ResponseWriter, request *http.Request) { hang(request) },
		"fails":  func(writer http.ResponseWriter, _ *http.Request) { writer.WriteHeader(http.StatusBadGateway) },
		"babble": func(writer http.ResponseWriter, _ *http.Request) { fmt.Fprint(writer, "no JSON") },
		"forgets": func(writer http.ResponseWriter, _ *http.Request) {
			writer.WriteHeader(http.StatusConflict)
			fmt.Fprint(writer, `{"reason":"NoTrial","message":"no trial has begun"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, options := faulty(t, honest)
			options.Last = 2
			requests := 0
			options.Agent = agentThat(t, func(writer http.ResponseWriter, request *http.Request) {
				if _, err := io.Copy(io.Discard, request.Body); err != nil {
					t.Error(err)
				}
				if requests++; requests == 1 || request.URL.Path == "/v1/begin" && name == "forgets" {
					fmt.Fprint(writer, "{}")
					return
				}
				lose(writer, request)
			})
			options.Agent.Grace = 100 * time.Millisecond
			for _, trial := range run(t, options) {
				completed(t, trial)
				if trial.Server != nil {
					t.Errorf("%+v", trial.Server)
				}
			}
		})
	}
}

func TestRefusalOfAgentIsReported(t *testing.T) {
	server, options := faulty(t, honest)
	options.Agent = agentThat(t, func(writer http.ResponseWriter, _ *http.Request) {
		writer.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(writer, `{"reason":"TokenRefused","message":"another token"}`)
	})
	var failure *contract.Failure
	if err := options.run(context.Background(), &collected{}); !errors.As(err, &failure) || failure.Reason != "TokenRefused" {
		t.Errorf("%v", err)
	}
	server.expectRanges(t)
}
