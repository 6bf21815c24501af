// Package pinned provides TLS between programs that know a key. It uses no CA, no name and no date, because clocks at the edge
// are wrong.
package pinned

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	"tierbench.io/client/internal/contract"
)

// Of returns the pin of a key: the SHA-256 of its SubjectPublicKeyInfo, as in curl's --pinnedpubkey.
func Of(subjectPublicKeyInfo []byte) string {
	digest := sha256.Sum256(subjectPublicKeyInfo)
	return "sha256//" + base64.StdEncoding.EncodeToString(digest[:])
}

// Client connects only to a server with the key of this pin. Otherwise the handshake fails with a *contract.Failure.
func Client(pin string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // of CA, name and dates
		VerifyConnection: func(state tls.ConnectionState) error {
			if found := Of(state.PeerCertificates[0].RawSubjectPublicKeyInfo); found != pin {
				message := fmt.Sprintf("the server has the key %s instead of the agent's %s: check whether another program has its address", found, pin)
				return &contract.Failure{Reason: "AgentKeyUnknown", Message: message}
			}
			return nil
		},
	}
}

// Server returns a configuration with the private key of a PEM file and a self-signed certificate, because TLS needs a
// certificate.
func Server(file []byte) (*tls.Config, error) {
	block, _ := pem.Decode(file)
	if block == nil {
		return nil, errors.New("no PEM is in it")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	signer, can := key.(crypto.Signer)
	if !can {
		return nil, fmt.Errorf("a key of type %T cannot sign", key)
	}
	always := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, always, always, signer.Public(), signer)
	if err != nil {
		return nil, err
	}
	made := tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{made}}, nil
}
