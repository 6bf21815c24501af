// Package download fetches a file over HTTP again and again, with wget's semantics, and measures each time.
package download

import (
	"crypto/tls"
	"net/url"
	"time"

	"tierbench.io/client/internal/beside"
)

// Options of downloads from one server.
type Options struct {
	URL          *url.URL
	Size         int64         // bytes that the file must have
	Concurrency  int           // downloads at the same time
	ReadTimeout  time.Duration // a wait for data longer than this is a retry
	Attempts     int           // connections that a download may use
	Wait         time.Duration // before each further attempt
	Limit        time.Duration // a trial that takes longer has failed; 0: none
	VerifyDigest bool
	Copy         bool          // copy content out of the kernel that nobody looks at, too
	TLS          *tls.Config   // nil for plain HTTP
	CacheState   string        // asked of the agent
	Agent        *beside.Agent // nil without
}

// copies reports whether the content leaves the kernel: to be deciphered, to be compared, or because it is to.
func (o *Options) copies() bool { return o.Copy || o.VerifyDigest || o.TLS != nil }
