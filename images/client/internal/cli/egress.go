package cli

import (
	"fmt"

	"github.com/spf13/pflag"

	"tierbench.io/client/internal/egress"
)

// egressFlags name the networks in which a server must not be.
type egressFlags struct{ refused string }

func (f *egressFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.refused, "refused-networks", "", "networks that no server's name may lead to, as in 127.0.0.0/8,::1/128")
}

func (f *egressFlags) refusedNetworks() (egress.Networks, error) {
	networks, err := egress.Parse(f.refused)
	if err != nil {
		return nil, fmt.Errorf("--refused-networks: %w: write networks, as in 127.0.0.0/8,::1/128", err)
	}
	return networks, nil
}
