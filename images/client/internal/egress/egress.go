// Package egress keeps a client from addresses that an administrator refuses, whatever name leads to them.
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

// Networks are those in which nothing is to be reached.
type Networks []netip.Prefix

// Parse reads networks, as in 127.0.0.0/8,::1/128; none of nothing.
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

// Dialer refuses an address in them, as it is once its name is resolved, before it is connected to.
func (n Networks) Dialer() *net.Dialer {
	return &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		found, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return n.check(found.Addr())
	}}
}

// Resolve is the first address of a host that is not in them, for a program that connects by itself.
func (n Networks) Resolve(ctx context.Context, host string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(limited, "ip", host)
	switch {
	case ctx.Err() != nil:
		return "", context.Canceled
	case err != nil:
		message := fmt.Sprintf("%v: does the DNS of the client's node answer, and know the name?", err)
		return "", &contract.Failure{Reason: "LookupFailed", Message: message}
	}
	for _, address := range addresses {
		if err = n.check(address); err == nil {
			return address.Unmap().String(), nil
		}
	}
	return "", err
}

// check gives a *contract.Failure for an address that is refused.
func (n Networks) check(address netip.Addr) error {
	plain := address.Unmap().WithZone("")
	for _, network := range n {
		if network.Contains(plain) {
			message := fmt.Sprintf("the server's name leads to %v, which is refused here: name another server, or have %v taken "+
				"out of policy.refusedNetworks, a value of the chart", plain, network)
			return &contract.Failure{Reason: "AddressRefused", Message: message}
		}
	}
	return nil
}
