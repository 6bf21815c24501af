package transfer

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/tlsconfig"
)

var quiet = log.New(io.Discard, "", 0) // of servers whose clients refuse them

// secured starts a server with TLS of one version, and returns the file of its CA.
func secured(t *testing.T, version uint16, spoil spoiler) (*server, string) {
	t.Helper()
	made := newServer(t, spoil)
	made.TLS = &tls.Config{MinVersion: version, MaxVersion: version}
	made.Config.ErrorLog = quiet
	made.StartTLS()
	file := filepath.Join(t.TempDir(), "ca.crt")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.Certificate().Raw})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return made, file
}

func (s *server) secure(t *testing.T, version, caFile, name string) *trialOptions {
	t.Helper()
	options := s.options(t)
	var err error
	if options.TLS, err = tlsconfig.New(version, caFile, name); err != nil {
		t.Fatal(err)
	}
	return options
}

func TestDownloadsOverTLSResume(t *testing.T) {
	for version, number := range map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13} {
		for _, verify := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s digest=%v", version, verify), func(t *testing.T) {
				server, caFile := secured(t, number, once(func(writer http.ResponseWriter) {
					writer.Header().Set("Content-Length", fmt.Sprint(size))
					writer.Header().Set("Etag", `"one"`)
					_, _ = writer.Write(content[:size/2])
					panic(http.ErrAbortHandler)
				}))
				options := server.secure(t, version, caFile, "example.com")
				options.VerifyDigest = verify
				trial := run(t, options)[0]
				completed(t, trial, contract.Truncated)
				server.expectRanges(t, all, missing)
				if trial.Transfer.TLSNanoseconds == nil {
					t.Errorf("%+v", trial.Transfer)
				}
			})
		}
	}
}

func TestUntrustedServerFailsAtOnce(t *testing.T) {
	other := filepath.Join(t.TempDir(), "other.crt")
	if err := os.WriteFile(other, unrelated(t), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, version, ca, serverName, reason string
	}{
		{"another CA", "TLSv1.3", other, "example.com", "CertificateRefused"},
		{"another name", "TLSv1.3", "", "example.org", "CertificateRefused"},
		{"another version", "TLSv1.2", "", "example.com", "TLSFailed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			server, caFile := secured(t, tls.VersionTLS13, honest)
			if test.ca != "" {
				caFile = test.ca
			}
			trial := run(t, server.secure(t, test.version, caFile, test.serverName))[0]
			failed(t, trial, test.reason)
			retried(t, trial)
		})
	}
}

// unrelated makes a CA that has signed nothing.
func unrelated(t *testing.T) []byte {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

func TestServerWithoutTLSFailsAtOnce(t *testing.T) {
	server, options := faulty(t, honest)
	server.Config.ErrorLog = quiet
	var err error
	if options.TLS, err = tlsconfig.New("TLSv1.3", "", ""); err != nil {
		t.Fatal(err)
	}
	trial := run(t, options)[0]
	failed(t, trial, "TLSFailed")
	retried(t, trial)
}

func TestWrongTLSOptionsAreRefused(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range [][2]string{{"TLSv1.1", ""}, {"TLSv1.3", empty}, {"TLSv1.3", empty + ".absent"}} {
		if _, err := tlsconfig.New(wrong[0], wrong[1], ""); err == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
}
