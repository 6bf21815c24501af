// Package post is the driver for HTTP/1.1: the body of a POST request is a message, and the response acknowledges it.
package post

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"time"

	"tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/egress"
	"tierbench.io/client/internal/transport"
)

// Driver posts to one URL. A request has the headers Host, Content-Type and Content-Length, with an account Authorization, and no
// other.
type Driver struct {
	Address            string // HOST:PORT
	Host               string // that requests name
	Target             string // path and query
	TLS                *tls.Config
	Username, Password string
	Timeout            time.Duration // for the response to a message
	Quick              bool          // for a light load
	Refused            egress.Networks
}

// Connect makes the connection of one publisher.
func (d *Driver) Connect(ctx context.Context, _ string, events broker.Events) (broker.Connection, error) {
	made := &connection{driver: d, events: events, head: d.head()}
	made.statistics.Errors = map[string]int64{}
	made.ending, made.end = context.WithCancel(context.Background())
	started := time.Now()
	over, err := d.dial(ctx)
	if err != nil {
		return nil, transport.Refusal(err, d.TLS != nil, false)
	}
	made.live = over
	made.statistics.Connect, made.statistics.TLS = time.Since(started)-over.Handshake, over.Handshake
	made.statistics.Transport = broker.Transport{Local: over.TCP.LocalAddr(), Congestion: over.Congestion(), Cipher: over.Cipher}
	return made, nil
}

func (d *Driver) dial(ctx context.Context) (*conn, error) {
	over, err := transport.Dial(ctx, transport.Options{Address: d.Address, TLS: d.TLS, Timeout: d.Timeout, Quick: d.Quick, Refused: d.Refused})
	if err != nil {
		return nil, err
	}
	return newConn(over), nil
}

// head returns what every request begins with, up to its length.
func (d *Driver) head() string {
	head := "POST " + d.Target + " HTTP/1.1\r\nHost: " + d.Host + "\r\n"
	if d.Username != "" {
		head += "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(d.Username+":"+d.Password)) + "\r\n"
	}
	return head + "Content-Type: application/octet-stream\r\nContent-Length: "
}
