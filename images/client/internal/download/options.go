// Package download fetches a file over HTTP again and again, with wget's semantics, and measures each time.
package download

import (
	"crypto/tls"
	"net/url"
	"time"

	"tierbench.io/client/internal/beside"
	"tierbench.io/client/internal/contract"
)

// Options of a series of downloads.
type Options struct {
	contract.Series

	URL          *url.URL
	Size         int64         // bytes that the file must have
	Concurrency  int           // downloads at the same time
	ReadTimeout  time.Duration // a wait for data longer than this is a retry
	Attempts     int           // connections that a download may use
	Wait         time.Duration // before each further attempt
	VerifyDigest bool
	TLS          *tls.Config   // nil for plain HTTP
	CacheState   string        // asked of the agent
	Agent        *beside.Agent // nil without
}
