// Package egress prevents connections to addresses that an administrator refuses, by whatever name.
package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"tierbench.io/client/internal/contract"
)

const lookupTimeout = 30 * time.Second

// Networks are the refused networks.
type Networks []netip.Prefix

// Parse parses networks, as in 127.0.0.0/8,::1/128. An empty list is valid.
func Parse(list string) (Networks, error) {
	var found Networks
	for text := range strings.FieldsFuncSeq(list, func(letter rune) bool { return letter == ',' }) {
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
	for _, network := range n {
		if network.Contains(plain) {
			message := fmt.Sprintf("the server's name resolves to %v, which is refused: name another server, or ask an administrator "+
				"to remove %v from the chart value policy.refusedNetworks", plain, network)
			return &contract.Failure{Reason: "AddressRefused", Message: message}
		}
	}
	return nil
}
