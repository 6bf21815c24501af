package transfer

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"time"
)

const (
	lookupTimeout = 30 * time.Second
	familyPause   = 300 * time.Millisecond // before the other family of addresses is tried, too, see RFC 8305
)

// target holds the addresses of a server, in the order in which they are tried.
type target struct {
	addresses []netip.AddrPort
	lookup    time.Duration // of its name; 0 for an address
}

// lookUp resolves the host of a URL, once for all connections of a trial. If the name cannot be resolved, the error is a
// *contract.Failure, which says nothing about the server.
func lookUp(ctx context.Context, address *url.URL) (target, error) {
	port, err := net.LookupPort("tcp", port(address))
	if err != nil {
		return target{}, fatal("InvalidURL", err.Error())
	}
	host := address.Hostname()
	if literal, err := netip.ParseAddr(host); err == nil {
		return target{addresses: []netip.AddrPort{netip.AddrPortFrom(literal, uint16(port))}}, nil
	}
	limited, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	started := time.Now()
	found, err := net.DefaultResolver.LookupNetIP(limited, "ip", host)
	took := time.Since(started)
	switch {
	case ctx.Err() != nil:
		return target{}, context.Canceled
	case err != nil:
		return target{}, fatal("LookupFailed", fmt.Sprintf("%v: check the name, and the DNS of the client's node", err))
	}
	server := target{lookup: took}
	for _, one := range found {
		server.addresses = append(server.addresses, netip.AddrPortFrom(one.Unmap(), uint16(port)))
	}
	return server, nil
}

func port(address *url.URL) string {
	if named := address.Port(); named != "" {
		return named
	}
	return address.Scheme
}

// dial connects to the first address that answers, within the timeout. After a pause, or when all addresses of the preferred
// family have failed, it also tries the other family. The first connection wins.
func (t target) dial(ctx context.Context, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	preferred, others := t.families()
	pause := time.NewTimer(familyPause)
	defer pause.Stop()
	results := make(chan dialed)
	go dialInTurn(ctx, preferred, results)
	var failure error
	for running := 1; ; {
		select {
		case <-ctx.Done():
			return nil, cmp.Or(failure, ctx.Err())
		case <-pause.C:
		case result := <-results:
			if result.err == nil {
				return result.conn, nil
			}
			failure = cmp.Or(failure, result.err)
			running--
		}
		switch {
		case len(others) > 0:
			go dialInTurn(ctx, others, results)
			running, others = running+1, nil
		case running == 0:
			return nil, failure
		}
	}
}

// families separates the addresses of the first one's family from the others.
func (t target) families() (preferred, others []netip.AddrPort) {
	for _, address := range t.addresses {
		if address.Addr().Is4() == t.addresses[0].Addr().Is4() {
			preferred = append(preferred, address)
		} else {
			others = append(others, address)
		}
	}
	return preferred, others
}

type dialed struct {
	conn net.Conn
	err  error
}

// dialInTurn sends a connection, or the first error. Each address gets its share of the remaining time.
func dialInTurn(ctx context.Context, addresses []netip.AddrPort, results chan<- dialed) {
	var result dialed
	deadline, _ := ctx.Deadline()
	for index, address := range addresses {
		share := time.Until(deadline) / time.Duration(len(addresses)-index)
		dialer := net.Dialer{Deadline: time.Now().Add(share)}
		conn, err := dialer.DialContext(ctx, "tcp", address.String())
		if err == nil {
			result = dialed{conn: conn}
			break
		}
		result.err = cmp.Or(result.err, err)
	}
	select {
	case results <- result:
	case <-ctx.Done():
		if result.conn != nil {
			result.conn.Close()
		}
	}
}
