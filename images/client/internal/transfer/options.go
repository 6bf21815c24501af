// Package transfer sends a file over HTTP repeatedly, in either direction and with wget's semantics, and measures each transfer.
package transfer

import (
	"cmp"
	"crypto/tls"
	"net/url"
	"strconv"
	"time"

	"tierbench.io/client/internal/agentclient"
	"tierbench.io/client/internal/contract"
)

// Options are the options of transfers with one server.
type Options struct {
	URL          *url.URL      // of the file; uploads go to names below it
	Upload       bool          // send files instead of receiving them
	Size         int64         // bytes that the file must have
	Concurrency  int           // transfers at the same time
	ReadTimeout  time.Duration // a wait for data, or its acknowledgement, longer than this is a retry
	Attempts     int           // connections that a transfer may use
	Wait         time.Duration // before the second attempt
	WaitMaximum  time.Duration // each further wait is longer by the first one, up to this; 0: all are the same
	Limit        time.Duration // a trial that takes longer has failed; 0: none
	VerifyDigest bool
	Copy         bool               // copy all content out of the kernel, although it is not used
	TLS          *tls.Config        // nil for plain HTTP
	Program      *Program           // makes the transfers; nil: this program
	CacheState   string             // asked of the agent
	Agent        *agentclient.Agent // nil without
}

// wait returns the pause before the attempt that follows attempt `number`, counted from 1, as wget's linear back-off.
func (o *Options) wait(number int) time.Duration {
	if o.WaitMaximum == 0 {
		return o.Wait
	}
	return min(time.Duration(number)*o.Wait, o.WaitMaximum)
}

// address returns the URL of one of the simultaneous transfers.
func (o *Options) address(index int) *url.URL {
	if o.Upload {
		return o.URL.JoinPath(strconv.Itoa(index))
	}
	return o.URL
}

func (o *Options) direction() string {
	if o.Upload {
		return contract.Upload
	}
	return contract.Download
}

// copies reports whether the content is copied from the kernel: to decrypt it, to compare it, or on request.
func (o *Options) copies() bool {
	return o.Copy || o.VerifyDigest || o.TLS != nil || o.Program != nil
}

// handshake returns the configuration of TLS, with the name that the server's certificate must have.
func (o *Options) handshake() *tls.Config {
	config := o.TLS.Clone()
	config.ServerName = cmp.Or(config.ServerName, o.URL.Hostname())
	return config
}
