// Package download fetches a file over HTTP again and again, with wget's semantics, and measures each time.
package download

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"time"
)

// Options of a series of downloads.
type Options struct {
	URL          *url.URL
	Size         int64         // bytes that the file must have
	First, Last  int           // numbers of the trials to run
	Warmup       int           // trials before them that do not count
	Concurrency  int           // downloads at the same time
	ReadTimeout  time.Duration // a wait for data longer than this is a retry
	Attempts     int           // connections that a download may use
	Wait         time.Duration // before each further attempt
	VerifyDigest bool
	TLS          *tls.Config // nil for plain HTTP
	CacheState   string      // asked of the agent
	Agent        *Agent      // nil without
}

// TLSConfig makes the client's side of TLS in exactly one version, trusting the CA in caFile, or the system's if empty.
func TLSConfig(version, caFile, serverName string) (*tls.Config, error) {
	versions := map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}
	if version == "None" {
		return nil, nil
	}
	number, known := versions[version]
	if !known {
		return nil, fmt.Errorf("--tls is %q: write None, TLSv1.2 or TLSv1.3", version)
	}
	config := &tls.Config{MinVersion: number, MaxVersion: number, ServerName: serverName}
	if caFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("--ca-file: %w", err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--ca-file %s holds no certificate in PEM form", caFile)
	}
	return config, nil
}
