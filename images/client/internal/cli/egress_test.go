package cli

import (
	"net"
	"testing"
)

func TestRefusedServersAreNotReached(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	address := net.JoinHostPort("localhost", port)
	for name, arguments := range map[string][]string{
		"mqtt":    {"Broker", "url=mqtt://" + address, "messages=1", "inFlight=1"},
		"kafka":   {"Broker", "url=kafka://" + address, "messages=1", "inFlight=1"},
		"network": {"Network", "server=" + address},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for networks, want := range map[string]string{"127.0.0.0/8,::1/128": "AddressRefused", "127.0.0.1": "InvalidArguments"} {
				code, trials, seal := sealed(t, append(arguments, "refusedNetworks="+networks)...)
				if code != 1 || len(trials) != 0 || seal.Failure == nil || seal.Failure.Reason != want {
					t.Errorf("%s: exit code %d, %+v", networks, code, seal)
				}
			}
		})
	}
}
