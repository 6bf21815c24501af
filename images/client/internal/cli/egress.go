package cli

import (
	"fmt"

	"github.com/spf13/pflag"

	"tierbench.io/client/internal/egress"
)

// egressFlags name the networks in which a server must not be, and the hosts to which it may send its clients.
type egressFlags struct{ refused, allowed string }

func (f *egressFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.refused, "refused-networks", "", "networks that no server's name may lead to, as in 127.0.0.0/8,::1/128")
	set.StringVar(&f.allowed, "allowed-hosts", "", "networks and names that a Kafka may send its clients to, as in 10.0.0.0/8,*.example.com "+
		"(default every host)")
}

func (f *egressFlags) allowedHosts() (egress.Hosts, error) {
	hosts, err := egress.ParseHosts(f.allowed)
	if err != nil {
		return egress.Hosts{}, fmt.Errorf("--allowed-hosts: %w: write networks and names, as in 10.0.0.0/8,*.example.com", err)
	}
	return hosts, nil
}

func (f *egressFlags) refusedNetworks() (egress.Networks, error) {
	networks, err := egress.Parse(f.refused)
	if err != nil {
		return nil, fmt.Errorf("--refused-networks: %w: write networks, as in 127.0.0.0/8,::1/128", err)
	}
	return networks, nil
}
