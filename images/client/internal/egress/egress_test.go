package egress

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"tierbench.io/client/internal/contract"
)

const usual = "0.0.0.0/8,127.0.0.0/8,169.254.0.0/16,::/128,::1/128,fe80::/10"

func parsed(t *testing.T, list string) Networks {
	t.Helper()
	networks, err := Parse(strings.FieldsFunc(list, func(letter rune) bool { return letter == ',' }))
	if err != nil {
		t.Fatal(err)
	}
	return networks
}

func refused(err error) bool {
	var failure *contract.Failure
	return errors.As(err, &failure) && failure.Reason == "AddressRefused"
}

func TestAddressIsRefusedInEverySpelling(t *testing.T) {
	networks := parsed(t, usual)
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "0.0.0.0": true, "169.254.169.254": true, "::": true, "::1": true, "fe80::1%lo": true,
		"febf::1": true, "::ffff:127.0.0.1": true, "::ffff:a9fe:a9fe": true, "0:0:0:0:0:0:0:1": true, "localhost": true,
		"192.0.2.1": false, "126.255.255.255": false, "::2": false, "2001:db8::1": false, "::ffff:192.0.2.1": false,
	} {
		if _, err := networks.Resolve(context.Background(), host); refused(err) != want {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestRefusedAddressIsNotDialled(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1", "0.0.0.0"} {
		address := net.JoinHostPort(host, port)
		if over, err := parsed(t, usual).Dialer().Dial("tcp", address); !refused(err) {
			t.Errorf("%s: %v, %v", host, over, err)
		}
		over, err := parsed(t, "").Dialer().Dial("tcp", address)
		if err != nil {
			t.Errorf("%s is not reached, although nothing is refused: %v", host, err)
			continue
		}
		over.Close()
	}
}

func TestNameResolvesToAllowedAddress(t *testing.T) {
	address, err := parsed(t, "::1/128").Resolve(context.Background(), "localhost")
	if err != nil || address != "127.0.0.1" {
		t.Errorf("%s, %v", address, err)
	}
	var failure *contract.Failure
	if _, err := parsed(t, usual).Resolve(context.Background(), "no-such-host.invalid"); !errors.As(err, &failure) || failure.Reason != "LookupFailed" {
		t.Errorf("%v", err)
	}
}

func TestServerRedirectsClientsOnlyToAllowedHosts(t *testing.T) {
	for _, test := range []struct {
		hosts         []string
		address, want string
	}{
		{nil, "203.0.113.1:9092", "203.0.113.1:9092"},
		{[]string{"127.0.0.0/8", "*.example.com"}, "127.0.0.1:9092", "127.0.0.1:9092"},
		{[]string{"127.0.0.0/8", "*.example.com"}, "localhost:9092", "127.0.0.1:9092"},
		{[]string{"127.0.0.0/8", "*.example.com"}, "B-1.Example.com:9092", "B-1.Example.com:9092"},
		{[]string{"broker.example.com"}, "broker.example.com:9092", "broker.example.com:9092"},
		{[]string{"127.0.0.0/8", "*.example.com"}, "192.0.2.1:9092", ""},
		{[]string{"192.0.2.0/24"}, "localhost:9092", ""},
		{[]string{"broker.example.com"}, "127.0.0.1:9092", ""},
		{[]string{"broker.example.com"}, "localhost:9092", ""},
	} {
		hosts, err := ParseHosts(test.hosts)
		if err != nil {
			t.Fatal(err)
		}
		found, err := hosts.Resolve(context.Background(), test.address)
		if found != test.want || refused(err) != (test.want == "") {
			t.Errorf("%+v: %q, %v", test, found, err)
		}
	}
	if _, err := ParseHosts([]string{"10.0.0.0/99"}); err == nil {
		t.Error("an invalid network is accepted")
	}
}

func TestInvalidNetworkIsReported(t *testing.T) {
	for _, text := range []string{"127.0.0.1", "10.0.0.0/33", "localhost", "10.0.0.0/8,::1/128", ""} {
		if networks, err := Parse([]string{text}); err == nil {
			t.Errorf("%q: %v", text, networks)
		}
	}
}
