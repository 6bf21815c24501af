package pinned

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
)

func newKey(t *testing.T) (key *ecdsa.PrivateKey, pin string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return key, Of(public)
}

// serving counts requests over TLS with this configuration.
func serving(t *testing.T, config *tls.Config) (url string, asked *int) {
	t.Helper()
	asked = new(int)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { *asked++ }))
	server.TLS = config
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, asked
}

func get(url, pin string) error {
	transport := &http.Transport{TLSClientConfig: Client(pin)}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get(url)
	if err == nil {
		response.Body.Close()
	}
	return err
}

// TestCertificateDatesAreIgnored: a clock that is wrong makes every certificate expired, or not valid yet.
func TestCertificateDatesAreIgnored(t *testing.T) {
	for name, from := range map[string]time.Time{"expired": time.Unix(0, 0), "not valid yet": time.Now().Add(time.Hour), "valid": time.Now().Add(-time.Hour / 2)} {
		t.Run(name, func(t *testing.T) {
			key, pin := newKey(t)
			template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: from.Add(time.Hour)}
			certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
			if err != nil {
				t.Fatal(err)
			}
			url, _ := serving(t, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}})
			if err := get(url, pin); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestServerWithAnotherKeyIsRefused(t *testing.T) {
	key, pin := newKey(t)
	_, other := newKey(t)
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	config, err := Server(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
	if err != nil {
		t.Fatal(err)
	}
	url, asked := serving(t, config)
	err = get(url, other)
	var failure *contract.Failure
	if !errors.As(err, &failure) || failure.Reason != "AgentKeyUnknown" || *asked != 0 {
		t.Errorf("%v after %d requests", err, *asked)
	}
	if err := get(url, pin); err != nil || *asked != 1 {
		t.Errorf("%v after %d requests", err, *asked)
	}
}

func TestInvalidKeyFileIsRefused(t *testing.T) {
	for _, file := range []string{"", "no PEM", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("no key")}))} {
		if _, err := Server([]byte(file)); err == nil {
			t.Errorf("%q was accepted", file)
		}
	}
}
