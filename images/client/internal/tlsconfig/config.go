// Package tlsconfig creates TLS configurations of clients.
package tlsconfig

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// New returns the client's side of TLS with exactly one version. It trusts the CA in caFile, or the system's CAs if that is
// empty.
func New(version, caFile, serverName string) (*tls.Config, error) {
	versions := map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}
	if version == "None" {
		return nil, nil
	}
	number, known := versions[version]
	if !known {
		return nil, fmt.Errorf("tls is %q: write None, TLSv1.2 or TLSv1.3", version)
	}
	config := &tls.Config{MinVersion: number, MaxVersion: number, ServerName: serverName}
	if caFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("caFile: %w", err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("caFile %s holds no certificate in PEM form", caFile)
	}
	return config, nil
}

// Present lets connections present the certificate in a file to a server that asks for one.
func Present(config *tls.Config, certificateFile, keyFile string) error {
	certificate, err := tls.LoadX509KeyPair(certificateFile, keyFile)
	if err != nil {
		return fmt.Errorf("clientCertificateFile and clientKeyFile: %w", err)
	}
	config.Certificates = []tls.Certificate{certificate}
	return nil
}
