package download

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
)

const certifiedName = "example.com" // in the certificate of httptest

// secured serves content from `lowest` to `highest` version of TLS, and breaks off the first answer after its half if
// asked to. It gives options that trust it, and counts connections; `versions` are those of the requests.
type secured struct {
	server      *httptest.Server
	caFile      string
	connections atomic.Int64
	versions    chan uint16
}

func serveSecured(t *testing.T, lowest, highest uint16, breakOff bool) *secured {
	t.Helper()
	serving := &secured{versions: make(chan uint16, 10)}
	var requests atomic.Int64
	serving.server = httptest.NewUnstartedServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		serving.versions <- request.TLS.Version
		if strings.HasSuffix(request.URL.Path, ".sha256") {
			fmt.Fprintf(writer, "%x\n", sha256.Sum256(content))
			return
		}
		if requests.Add(1) == 1 && breakOff {
			half(writer, func(net.Conn) {})
			return
		}
		writer.Header().Set("Etag", `"one"`)
		http.ServeContent(writer, request, "", time.Time{}, bytes.NewReader(content))
	}))
	serving.server.TLS = &tls.Config{MinVersion: lowest, MaxVersion: highest}
	serving.server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes fail on purpose
	serving.server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			serving.connections.Add(1)
		}
	}
	serving.server.StartTLS()
	t.Cleanup(serving.server.Close)
	serving.caFile = certificateFile(t, serving.server)
	return serving
}

func certificateFile(t *testing.T, server *httptest.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.crt")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (s *secured) options(t *testing.T, version, serverName string) *Options {
	t.Helper()
	config, err := TLSConfig(version, s.caFile, serverName)
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(s.server.URL + "/file.bin")
	if err != nil {
		t.Fatal(err)
	}
	return &Options{
		URL: address, Size: size, First: 1, Last: 1, Concurrency: 1, ReadTimeout: time.Second,
		Attempts: 3, Wait: time.Millisecond, CacheState: "Natural", TLS: config,
	}
}

func TestTLSIsOfTheVersionAskedFor(t *testing.T) {
	for version, number := range map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13} {
		for _, verify := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s digest=%v", version, verify), func(t *testing.T) {
				serving := serveSecured(t, tls.VersionTLS12, tls.VersionTLS13, true)
				options := serving.options(t, version, certifiedName)
				options.VerifyDigest = verify
				trials, err := run(t, options)
				if err != nil {
					t.Fatal(err)
				}
				transfer := trials[0].Transfer
				if trials[0].Outcome != contract.Completed || transfer.Bytes != size || transfer.TLSNanoseconds <= 0 || transfer.DigestVerified != verify {
					t.Errorf("%+v, %+v", trials[0], transfer)
				}
				if want := map[string]int64{contract.Truncated: 1}; !reflect.DeepEqual(transfer.RetryCauses, want) {
					t.Errorf("retries %v, want %v", transfer.RetryCauses, want)
				}
				close(serving.versions)
				for got := range serving.versions {
					if got != number {
						t.Errorf("a request came with %s", tls.VersionName(got))
					}
				}
			})
		}
	}
}

func TestTLSThatNoAttemptCanMendFailsAtOnce(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for name, test := range map[string]struct {
		lowest, highest uint16
		version         string
		change          func(*Options)
		reason          string
	}{
		"another CA": {tls.VersionTLS12, tls.VersionTLS13, "TLSv1.3", func(options *Options) { options.TLS.RootCAs = nil }, "CertificateRefused"},
		"another name": {
			tls.VersionTLS12, tls.VersionTLS13, "TLSv1.2", func(options *Options) { options.TLS.ServerName = "elsewhere.test" }, "CertificateRefused",
		},
		"a server that is older": {tls.VersionTLS12, tls.VersionTLS12, "TLSv1.3", func(*Options) {}, "TLSFailed"},
		"a server that is newer": {tls.VersionTLS13, tls.VersionTLS13, "TLSv1.2", func(*Options) {}, "TLSFailed"},
		"a server without TLS": {
			tls.VersionTLS13, tls.VersionTLS13, "TLSv1.3", func(options *Options) { options.URL.Host = plain.Listener.Addr().String() }, "TLSFailed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			serving := serveSecured(t, test.lowest, test.highest, false)
			options := serving.options(t, test.version, certifiedName)
			test.change(options)
			trials, err := run(t, options)
			if err != nil {
				t.Fatal(err)
			}
			failure := trials[0].Failure
			if trials[0].Outcome != contract.Failed || failure.Reason != test.reason || trials[0].Transfer.Errors != 1 || trials[0].Transfer.Retries != 0 {
				t.Errorf("%+v, %+v", failure, trials[0].Transfer)
			}
			if number := serving.connections.Load(); number > 1 {
				t.Errorf("%d connections", number)
			}
		})
	}
}

func TestTheURLNamesTheServerUnlessAnotherNameIsGiven(t *testing.T) {
	serving := serveSecured(t, tls.VersionTLS12, tls.VersionTLS13, false)
	trials, err := run(t, serving.options(t, "TLSv1.3", "")) // 127.0.0.1, which the certificate bears too
	if err != nil || trials[0].Outcome != contract.Completed {
		t.Errorf("%v %+v", err, trials)
	}
}

func TestAHandshakeThatIsNotAnsweredStalls(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts for it
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	serving := serveSecured(t, tls.VersionTLS13, tls.VersionTLS13, false)
	options := serving.options(t, "TLSv1.3", certifiedName)
	options.URL.Host, options.Attempts, options.ReadTimeout = silent.Addr().String(), 2, 50*time.Millisecond
	trials, err := run(t, options)
	if err != nil {
		t.Fatal(err)
	}
	if trials[0].Failure.Reason != "AttemptsExhausted" || trials[0].Transfer.RetryCauses[contract.Stalled] != 1 {
		t.Errorf("%+v, %+v", trials[0].Failure, trials[0].Transfer)
	}
}

func TestWrongFilesAndVersionsOfTLSAreRefused(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ version, caFile, says string }{
		{"SSLv3", "", "write None, TLSv1.2 or TLSv1.3"},
		{"TLSv1.3", empty, "no certificate"},
		{"TLSv1.3", empty + ".absent", "--ca-file"},
	} {
		if _, err := TLSConfig(test.version, test.caFile, ""); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
