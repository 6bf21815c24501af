// Package egress prevents connections to addresses that an administrator refuses, by whatever name, or has not allowed.
package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"tierbench.io/client/internal/contract"
)

const lookupTimeout = 30 * time.Second

// Networks are the refused networks.
type Networks []netip.Prefix

// Parse parses networks, as in 127.0.0.0/8 and ::1/128. An empty list is valid.
func Parse(texts []string) (Networks, error) {
	var found Networks
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, err
		}
		found = append(found, network.Masked())
	}
	return found, nil
}

// Dialer returns a dialer that refuses addresses in these networks after name resolution, before it connects.
func (n Networks) Dialer() *net.Dialer {
	return &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		found, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return n.check(found.Addr())
	}}
}

// Resolve returns the first address of a host that is not refused, for a program that connects by itself.
func (n Networks) Resolve(ctx context.Context, host string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(limited, "ip", host)
	switch {
	case ctx.Err() != nil:
		return "", context.Canceled
	case err != nil:
		message := fmt.Sprintf("%v: check the name, and DNS on the node of the client", err)
		return "", &contract.Failure{Reason: "LookupFailed", Message: message}
	}
	for _, address := range addresses {
		if err = n.check(address); err == nil {
			return address.Unmap().String(), nil
		}
	}
	return "", err
}

// check returns a *contract.Failure for a refused address.
func (n Networks) check(address netip.Addr) error {
	plain := address.Unmap().WithZone("")
	place := slices.IndexFunc(n, contains(plain))
	if place < 0 {
		return nil
	}
	message := fmt.Sprintf("the server's name resolves to %v, which is refused: name another server, or ask an administrator "+
		"to remove %v from the chart value policy.refusedNetworks", plain, n[place])
	return &contract.Failure{Reason: "AddressRefused", Message: message}
}

func contains(address netip.Addr) func(netip.Prefix) bool {
	return func(network netip.Prefix) bool { return network.Contains(address) }
}

// Hosts are the hosts that a server may send its clients to. The zero value permits every host.
type Hosts struct {
	networks Networks
	names    []string
}

// ParseHosts parses networks and names, as in 10.0.0.0/8, broker.example.com and *.example.org. An empty list permits every host.
func ParseHosts(texts []string) (Hosts, error) {
	var found Hosts
	for _, text := range texts {
		if !strings.Contains(text, "/") {
			found.names = append(found.names, strings.ToLower(text))
			continue
		}
		networks, err := Parse([]string{text})
		if err != nil {
			return Hosts{}, err
		}
		found.networks = append(found.networks, networks...)
	}
	return found, nil
}

// Resolve returns the HOST:PORT to dial: the address itself, if every host or its name is permitted, or else one in the permitted
// networks.
func (h Hosts) Resolve(ctx context.Context, address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || len(h.networks) == 0 && len(h.names) == 0 || h.named(strings.ToLower(host)) {
		return address, err
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return "", err
	}
	for _, found := range addresses {
		if plain := found.Unmap().WithZone(""); slices.ContainsFunc(h.networks, contains(plain)) {
			return net.JoinHostPort(plain.String(), port), nil
		}
	}
	message := fmt.Sprintf("the server sends its clients to %s, which is not allowed: name another server, or ask an administrator to "+
		"add it to the chart value policy.allowedNetworks or policy.allowedNames", address)
	return "", &contract.Failure{Reason: "AddressRefused", Message: message}
}

func (h Hosts) named(host string) bool {
	return slices.ContainsFunc(h.names, func(name string) bool {
		suffix, wildcard := strings.CutPrefix(name, "*")
		return host == name || wildcard && strings.HasSuffix(host, suffix)
	})
}
