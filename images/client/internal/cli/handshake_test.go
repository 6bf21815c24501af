package cli

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/capturetest"
	"tierbench.io/client/internal/payload"
	"tierbench.io/client/internal/plan"
	"tierbench.io/client/internal/porttest"
)

// issueCertificate writes a client certificate and its key. The certificate is signed by tls.key in the same folder.
func issueCertificate(t *testing.T, folder string) {
	t.Helper()
	authority, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "user"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: later,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, key.Public(), authority.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "client.crt"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})))
	write(t, filepath.Join(folder, "client.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
}

// requireCertificates opens one more port of Mosquitto, at which clients need certificates.
func (m *mosquitto) requireCertificates(t *testing.T) int {
	t.Helper()
	issueCertificate(t, m.folder)
	port := porttest.Free(t)
	lines := fmt.Sprintf("listener %d 127.0.0.1\ncafile %[2]s/tls.crt\ncertfile %[2]s/tls.crt\nkeyfile %[2]s/tls.key\nrequire_certificate true\n", port, m.folder)
	write(t, m.config, string(read(t, m.config))+lines)
	m.restart(t)
	eventually(t, "mosquitto answers at the new port, too", func() bool {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return port
}

func presented(folder string) []string {
	return []string{"clientCertificateFile=" + folder + "/client.crt", "clientKeyFile=" + folder + "/client.key"}
}

func at(scheme string, port int) string { return fmt.Sprintf("url=%s://127.0.0.1:%d", scheme, port) }

func TestTLSSessionsAreResumedOnRequest(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	for _, version := range []string{"TLSv1.2", "TLSv1.3"} {
		t.Run(version, func(t *testing.T) {
			setup := map[string]int64{}
			for _, resumes := range []string{"false", "true"} {
				for _, trial := range measured(t, broker.arguments(version, "messages=5", "inFlight=1", "pairs=2", "trials=1-2", "resumeSessions="+resumes)...) {
					exchange := trial.Exchange
					if resumed := exchange.ResumedHandshakes; exchange.TLSHandshakes != exchange.Connections || resumed != map[string]int64{"false": 0, "true": exchange.TLSHandshakes}[resumes] {
						t.Errorf("resumeSessions %s: %d of %d handshakes of %d connections resumed", resumes, resumed, exchange.TLSHandshakes, exchange.Connections)
					}
					// Headers are left out: on a busy computer more packets only acknowledge.
					setup[resumes] = (exchange.SetupBytes - segmentHeaders*exchange.SetupPackets) / exchange.Connections
				}
			}
			if setup["true"] > setup["false"]-300 { // at least the certificate
				t.Errorf("%v bytes to set up a connection", setup)
			}
		})
	}
}

func TestBrokerRequiresClientCertificates(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	port := broker.requireCertificates(t)
	requiresCertificates(t, broker.folder, at("mqtts", broker.tlsPort), "true", func(tls string, more ...string) []string {
		return instead(broker.arguments(tls, more...), at("mqtts", port))
	})
}

// requiresCertificates connects with and without client certificates. `arguments` are for a port that requires
// certificates, and `open` is the URL of one that does not. `resumes` says whether the broker resumes sessions.
func requiresCertificates(t *testing.T, folder, open, resumes string, arguments func(tls string, more ...string) []string) {
	other, load := t.TempDir(), []string{"messages=5", "inFlight=1", "trials=1-2"}
	writeCertificates(t, other, later)
	issueCertificate(t, other)
	for _, version := range []string{"TLSv1.2", "TLSv1.3"} {
		given := arguments(version, load...)
		for name, test := range map[string]struct {
			reason    string
			arguments []string
		}{
			"full":     {"", slices.Concat(given, presented(folder))},
			"resumed":  {"", slices.Concat(given, presented(folder), []string{"resumeSessions=" + resumes})},
			"none":     {"ClientCertificateRefused", given},
			"other CA": {"ClientCertificateRefused", slices.Concat(given, presented(other))},
			"unused":   {"ClientCertificateUnused", slices.Concat(instead(given, open), presented(folder))},
			"absent":   {"SecretUnusable", slices.Concat(given, presented("/absent"))},
		} {
			t.Run(version+" "+name, func(t *testing.T) {
				_, trials, seal := sealed(t, test.arguments...)
				switch failure := seal.Failure; {
				case test.reason != "":
					if failure == nil || failure.Reason != test.reason {
						t.Errorf("%+v", failure)
					}
				case failure != nil || len(trials) != 2:
					t.Errorf("%+v", failure)
				default:
					exchange := trials[1].Exchange
					if all := exchange.ResumedHandshakes == exchange.TLSHandshakes; exchange.Received != 5 || all != (name+resumes == "resumedtrue") {
						t.Errorf("%+v", exchange)
					}
				}
			})
		}
	}
}

// TestHandshakeBytesMatchACapture connects until the broker has accepted the login.
func TestHandshakeBytesMatchACapture(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t, later)
	comparesWithCapture(t, broker.folder, "mqtts", map[string]int{"": broker.tlsPort, "client.crt": broker.requireCertificates(t)}, false, true)
}

// comparesWithCapture has a port for each certificate of the client. `resumes` says whether the client resumes
// sessions.
func comparesWithCapture(t *testing.T, folder, scheme string, ports map[string]int, resumes ...bool) {
	content, err := payload.New("Zeros", 1024, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"TLSv1.2", "TLSv1.3"} {
		for certificate, port := range ports {
			for _, resumes := range resumes {
				t.Run(fmt.Sprintf("%s %s resumes %v", version, certificate, resumes), func(t *testing.T) {
					target := &plan.BrokerTarget{URL: fmt.Sprintf("%s://127.0.0.1:%d", scheme, port), UsernameFile: folder + "/username", PasswordFile: folder + "/password", CAFile: folder + "/tls.crt"}
					if certificate != "" {
						target.ClientCertificateFile, target.ClientKeyFile = folder+"/client.crt", folder+"/client.key"
					}
					given := &plan.BrokerPlan{TLS: version, ServerName: "broker", Delivery: "AtMostOnce", Encryption: "None", ResumeSessions: resumes, DeliveryTimeoutMilliseconds: 10000}
					driver, err := newDriver(given, target, content, nil)
					if err != nil {
						t.Fatal(err)
					}
					compareHandshake(t, driver, port, resumes)
				})
			}
		}
	}
}

func compareHandshake(t *testing.T, driver broker.Driver, port int, resumes bool) {
	connect(t, driver).Close() // the first connection has no session to resume
	capture := capturetest.Start(t, port)
	connection := connect(t, driver)
	defer connection.Close()
	statistics := connection.Statistics()
	if handshakes := statistics.Handshakes; handshakes.All != 1 || handshakes.Resumed != map[bool]int64{true: 1}[resumes] {
		t.Errorf("%+v", handshakes)
	}
	var counted, captured, segments int64
	eventually(t, "counters and capture differ by at most 1%", func() bool {
		captured, counted = 0, connection.Statistics().Wire.Bytes()
		all := capture.Of(statistics.Transport.Local.(*net.TCPAddr).Port)
		for _, segment := range all {
			captured += int64(segment.Bytes)
		}
		segments = int64(len(all))
		return captured > 0 && 100*max(counted-captured, captured-counted) <= captured
	})
	t.Logf("%d bytes counted, %d captured in %d segments", counted, captured, segments)
}

func connect(t *testing.T, driver broker.Driver) broker.Connection {
	t.Helper()
	limit, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	connection, err := driver.Connect(limit, "handshake", broker.Events{})
	if err != nil {
		t.Fatal(err)
	}
	return connection
}

// TestSetupBytesMatchACapture compares the two connections of a trial. They follow the two that find
// the broker ready. The last acknowledgement of TCP may come before or after the trial has read the counters.
func TestSetupBytesMatchACapture(t *testing.T) {
	t.Parallel()
	const message, record = 5000, 2200 // bytes: a message has one record or more of 2,300, and no flight of a handshake is as long
	broker := startMosquitto(t, later)
	for _, version := range []string{"TLSv1.2", "TLSv1.3"} {
		for _, resumes := range []string{"false", "true"} {
			t.Run(version+" resumes "+resumes, func(t *testing.T) {
				capture := capturetest.Start(t, broker.tlsPort)
				exchange := measured(t, broker.arguments(version, "tuning=Light", fmt.Sprintf("sizeBytes=%d", message), "messages=5", "inFlight=1", "resumeSessions="+resumes)...)[0].Exchange
				var least, most int64
				eventually(t, "the first message of each connection is captured", func() bool {
					clients := capture.Clients()
					if len(clients) < 4 {
						return false
					}
					least, most = 0, 0
					found := 0
					for _, client := range clients[2:4] {
						needed, all, complete := before(capture.Of(client), record)
						least, most = least+needed, most+all
						if complete {
							found++
						}
					}
					return found == 2
				})
				if setup := exchange.SetupBytes; float64(setup) < 0.99*float64(least) || float64(setup) > 1.01*float64(most) {
					t.Errorf("%d bytes of setup, and %d to %d captured", setup, least, most)
				}
				t.Logf("%d bytes of setup, %d to %d captured", exchange.SetupBytes, least, most)
			})
		}
	}
}

// before returns the bytes before the first segment with a message, and whether there is one. `needed` leaves out the
// acknowledgements just before that segment.
func before(segments []capturetest.Segment, record int) (needed, all int64, complete bool) {
	for _, segment := range segments {
		if segment.Payload >= record {
			return needed, all, true
		}
		all += int64(segment.Bytes)
		if segment.Payload > 0 {
			needed = all
		}
	}
	return needed, all, false
}
