package cli

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/payload"
	"tierbench.io/client/internal/plan"
	"tierbench.io/client/internal/post"
)

// poster is an HTTP server on loopback, with TLS and without.
type poster struct {
	folder         string
	plain, secured *httptest.Server
}

// take answers as nginx does.
func take(writer http.ResponseWriter, request *http.Request) {
	_, _ = io.Copy(io.Discard, request.Body)
	writer.WriteHeader(http.StatusNoContent)
}

func startPoster(t *testing.T, handle http.HandlerFunc) *poster {
	t.Helper()
	made := &poster{folder: t.TempDir()}
	writeCertificates(t, made.folder, later)
	write(t, filepath.Join(made.folder, "username"), "user")
	write(t, filepath.Join(made.folder, "password"), "right\n")
	write(t, filepath.Join(made.folder, "key"), "0123456789abcdef")
	pair, err := tls.LoadX509KeyPair(made.folder+"/tls.crt", made.folder+"/tls.key")
	if err != nil {
		t.Fatal(err)
	}
	made.plain, made.secured = httptest.NewServer(handle), httptest.NewUnstartedServer(handle)
	made.secured.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	made.secured.StartTLS()
	t.Cleanup(made.plain.Close)
	t.Cleanup(made.secured.Close)
	return made
}

// arguments returns the arguments of a publisher without subscribers that waits for each response.
func (p *poster) arguments(tls string, more ...string) []string {
	arguments := []string{"Broker", "tls=" + tls, "keyFile=" + p.folder + "/key", "serverName=broker", "warmRounds=0", "role=Alone", "delivery=AtLeastOnce"}
	if tls == "None" {
		arguments = append(arguments, "url="+p.plain.URL+"/readings")
	} else {
		arguments = append(arguments, "url="+p.secured.URL+"/readings", "caFile="+p.folder+"/tls.crt")
	}
	return append(arguments, more...)
}

func TestPostingCountsEveryMessage(t *testing.T) {
	t.Parallel()
	publishesAlone(t, startPoster(t, take).arguments, "AtLeastOnce")
}

func TestPostingWorksAtEveryPaceAndWithTLS(t *testing.T) {
	t.Parallel()
	to := startPoster(t, take)
	for _, tls := range []string{"None", "TLSv1.2", "TLSv1.3"} {
		for _, pace := range []string{"unacknowledged=1", "asFastAsPossible", "messagesPerSecond=1000"} {
			exchange := measured(t, to.arguments(tls, pace, "messages=100", "pairs=2", "compression=Zstd", "content=SensorJSON", "warmRounds=2")...)[0].Exchange
			if exchange.Acknowledged != 200 || exchange.Errors+exchange.Retried+exchange.Reconnects != 0 || exchange.Connections != 2 {
				t.Errorf("%s, %s: %+v", tls, pace, exchange)
			}
			if secured := tls != "None"; (exchange.TLSNanoseconds > 0) != secured || (exchange.Cipher != "") != secured || exchange.ConnectNanoseconds == 0 {
				t.Errorf("%s, %s: %+v", tls, pace, exchange)
			}
		}
	}
}

func TestConnectionsThatPostAreKept(t *testing.T) {
	t.Parallel()
	load := []string{"connections=Kept", "pairs=2", "messages=30", "asFastAsPossible", "warmupTrials=1", "trials=1-3"}
	for index, trial := range measured(t, startPoster(t, take).arguments("TLSv1.3", load...)...) {
		exchange := trial.Exchange
		if exchange.Acknowledged != 60 || exchange.Connections != 2 || (exchange.Setup != nil) != (index == 0) || exchange.Errors+exchange.Reconnects != 0 {
			t.Errorf("trial %d: %+v", index, exchange)
		}
	}
}

// TestPostedBytesMatchRequestAndResponse compares the load, without headers of packets, with requests and responses.
func TestPostedBytesMatchRequestAndResponse(t *testing.T) {
	t.Parallel()
	const messages = 200
	date := "Sat, 28 Nov 2026 12:00:00 GMT"
	to := startPoster(t, func(writer http.ResponseWriter, request *http.Request) {
		writer.Header().Set("Date", date)
		take(writer, request)
	})
	request := len("POST /readings HTTP/1.1\r\nHost: broker\r\nContent-Type: application/octet-stream\r\nContent-Length: 100\r\n\r\n") + 100
	response := len("HTTP/1.1 204 No Content\r\nDate: " + date + "\r\n\r\n")
	var plain float64
	for _, tls := range []string{"None", "TLSv1.2", "TLSv1.3"} {
		exchange := measured(t, to.arguments(tls, "tuning=Light", "sizeBytes=100", "unacknowledged=1", fmt.Sprintf("messages=%d", messages))...)[0].Exchange
		if exchange.TCPRetransmits > 0 {
			continue // on a busy machine
		}
		data := float64(exchange.LoadBytes-segmentHeaders*exchange.LoadPackets) / messages
		if tls == "None" {
			plain = data
			if data != float64(request+response) {
				t.Errorf("%v bytes per message, not %d", data, request+response)
			}
		} else if more, wanted := data-plain, 2*recordBytes[tls]; more < wanted-1 || more > wanted+2 { // a ticket of TLS 1.3 may come late
			t.Errorf("%s: %v bytes per message more than without, not %v", tls, more, wanted)
		}
		if exchange.LoadPackets < 2*messages {
			t.Errorf("%d packets", exchange.LoadPackets)
		}
	}
}

func TestRefusedMessagesAreCountedByStatus(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	to := startPoster(t, func(writer http.ResponseWriter, request *http.Request) {
		take(&mute{writer}, request)
		number := asked.Add(1)
		switch number % 5 {
		case 3:
			writer.WriteHeader(http.StatusServiceUnavailable)
		case 4:
			writer.WriteHeader(http.StatusTooManyRequests)
		default:
			writer.WriteHeader(http.StatusNoContent)
		}
	})
	trial := measured(t, to.arguments("None", "unacknowledged=1", "messages=50", patient)...)[0]
	exchange := trial.Exchange
	if exchange.Sent != 50 || exchange.Acknowledged != 30 || exchange.Errors != 20 || exchange.ErrorCauses["Status5xx"] != 10 || exchange.ErrorCauses["Status4xx"] != 10 {
		t.Errorf("%+v", exchange)
	}
	if took := time.Duration(trial.DurationNanoseconds); took > soon || exchange.AcknowledgedBytes != 30*1024 {
		t.Errorf("%v, %+v", took, exchange)
	}
}

// mute leaves the status to the caller.
type mute struct{ http.ResponseWriter }

func (*mute) WriteHeader(int) {}

func TestPostingFailsWithItsReason(t *testing.T) {
	t.Parallel()
	only := func(status int) http.HandlerFunc {
		return func(writer http.ResponseWriter, _ *http.Request) { writer.WriteHeader(status) }
	}
	small := func(writer http.ResponseWriter, request *http.Request) {
		if request.ContentLength > 500 {
			writer.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		take(writer, request)
	}
	account := func(writer http.ResponseWriter, request *http.Request) {
		if user, password, _ := request.BasicAuth(); user != "user" || password != "right" {
			writer.WriteHeader(http.StatusUnauthorized)
			return
		}
		take(writer, request)
	}
	quickly := "readyMilliseconds=300"
	withAccount := startPoster(t, account)
	for name, test := range map[string]struct {
		reason, says string
		arguments    []string
	}{
		"path":        {"RequestsRefused", "404 Not Found", startPoster(t, only(404)).arguments("None", quickly)},
		"no account":  {"RequestsRefused", "401 Unauthorized", withAccount.arguments("None", quickly)},
		"size":        {"PayloadNotDelivered", "413", startPoster(t, small).arguments("None")},
		"CA":          {"CertificateUnknown", "ca.crt", instead(withAccount.arguments("TLSv1.3"), "caFile="+startPoster(t, take).folder+"/tls.crt")},
		"no Secret":   {"SecretUnusable", "usernameFile: open /absent", withAccount.arguments("None", "usernameFile=/absent", "passwordFile=/absent")},
		"no username": {"SecretUnusable", "give it this key", withAccount.arguments("TLSv1.3", "usernameFile=/absent", "passwordFile="+withAccount.folder+"/password")},
		"no CA":       {"SecretUnusable", "caFile: open /absent", instead(withAccount.arguments("TLSv1.3"), "caFile=/absent")},
		"unreachable": {"BrokerUnreachable", "connection refused", instead(withAccount.arguments("None", quickly), "url=http://127.0.0.1:1/")},
		"silent": {"BrokerUnreachable", "no response came in time", startPoster(t, func(writer http.ResponseWriter, request *http.Request) {
			take(&mute{writer}, request)
			<-request.Context().Done()
		}).arguments("None", quickly)},
		"subscribers": {"InvalidArguments", "write role Alone", instead(withAccount.arguments("None"), "role=Both")},
		"delivery":    {"InvalidArguments", "delivery AtLeastOnce", instead(withAccount.arguments("None", "asFastAsPossible"), "delivery=ExactlyOnce")},
		"in flight":   {"InvalidArguments", "inFlight 1", withAccount.arguments("None", "unacknowledged=2")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arguments := test.arguments
			if name != "in flight" && name != "delivery" {
				arguments = append(arguments, "unacknowledged=1")
			}
			_, trials, seal := sealed(t, append(arguments, "messages=10")...)
			if len(trials) != 0 || seal.Failure == nil || seal.Failure.Reason != test.reason || !strings.Contains(seal.Failure.Message, test.says) {
				t.Errorf("%+v", seal.Failure)
			}
		})
	}
	trial := measured(t, withAccount.arguments("None", "unacknowledged=1", "messages=10",
		"usernameFile="+withAccount.folder+"/username", "passwordFile="+withAccount.folder+"/password")...)[0]
	if trial.Exchange.Acknowledged != 10 {
		t.Errorf("%+v", trial.Exchange)
	}
}

func TestSecretMayContainOnlyTheCA(t *testing.T) {
	t.Parallel()
	to := startPoster(t, take)
	trial := measured(t, to.arguments("TLSv1.3", "unacknowledged=1", "messages=10", "usernameFile=/absent", "passwordFile=/absent")...)[0]
	if trial.Exchange.Acknowledged != 10 {
		t.Errorf("%+v", trial.Exchange)
	}
}

func TestStrikeServerThatIsGoneFailsItsTrial(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	to := startPoster(t, func(writer http.ResponseWriter, request *http.Request) {
		asked.Add(1)
		take(writer, request)
	})
	one := strike{
		loads: []load{{
			func(int) []string {
				return to.arguments("None", "asFastAsPossible", fmt.Sprintf("messages=%d", endless), "deliveryTimeoutMilliseconds=2000", limit)
			},
			func() bool { return asked.Load() > 10 }, // more requests than before a load
		}},
		trial: 1, freeze: clientItself,
		fault: func([]*client) {
			_ = to.plain.Listener.Close()
			to.plain.CloseClientConnections()
		},
	}
	trial := one.run(t)[0].only(t)
	if trial.Outcome != contract.Failed || trial.Failure.Reason != "BrokerUnreachable" || trial.Exchange.Sent < trial.Exchange.Acknowledged {
		t.Errorf("%+v, %+v", trial.Failure, trial.Exchange)
	}
}

func TestURLGivesHostAndTargetOfRequests(t *testing.T) {
	content, err := payload.New("Zeros", 1024, 1)
	if err != nil {
		t.Fatal(err)
	}
	given := &plan.BrokerPlan{TLS: "None", Role: "Alone", Delivery: "AtLeastOnce"}
	for url, wanted := range map[string]string{
		"http://h:1": "h:1 /", "http://h:1/a/b?c=d&e=f": "h:1 /a/b?c=d&e=f", "http://[fd00::5]:80/": "[fd00::5]:80 /",
	} {
		driver, err := newDriver(given, &plan.BrokerTarget{URL: url}, content, nil)
		if err != nil {
			t.Fatal(err)
		}
		if made := driver.(*post.Driver); made.Host+" "+made.Target != wanted {
			t.Errorf("%s: %+v", url, made)
		}
	}
}
