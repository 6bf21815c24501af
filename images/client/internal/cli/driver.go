package cli

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"strings"
	"time"

	"tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/egress"
	"tierbench.io/client/internal/kafka"
	"tierbench.io/client/internal/mqtt"
	"tierbench.io/client/internal/tlsconfig"
)

const (
	kafkaScheme    = "kafka"
	moreThanWindow = 1 << 17
)

// schemes are the schemes of --url, and whether each uses TLS.
var schemes = map[string]bool{"mqtt": false, "mqtts": true, kafkaScheme: false, kafkaScheme + "s": true}

// driver returns the driver for the --url of a target, for messages of at most messageBytes.
func (f *brokerFlags) driver(index, messageBytes int) (broker.Driver, error) {
	given := of(f.url, index)
	address, err := url.Parse(given)
	if err != nil {
		return nil, fmt.Errorf("--url: %w", err)
	}
	secured, known := schemes[address.Scheme]
	switch {
	case !known || address.Port() == "":
		return nil, fmt.Errorf("--url is %q: write mqtt://HOST:PORT or kafka://HOST:PORT, with TLS mqtts:// or kafkas://", given)
	case secured != (f.tls != "None"):
		return nil, fmt.Errorf("--url begins with %s and --tls is %s: mqtts and kafkas need TLSv1.2 or TLSv1.3, mqtt and kafka None", address.Scheme, f.tls)
	}
	name := f.serverName
	if name == "" {
		name = address.Hostname()
	}
	config, err := tlsconfig.New(f.tls, of(f.caFile, index), name)
	if err != nil {
		return nil, err
	}
	username, err := wordIn("username-file", of(f.usernameFile, index))
	if err != nil {
		return nil, err
	}
	password, err := wordIn("password-file", of(f.passwordFile, index))
	if err != nil {
		return nil, err
	}
	refused, err := f.refusedNetworks()
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(address.Scheme, kafkaScheme) {
		allowed, err := f.allowedHosts()
		if err != nil {
			return nil, err
		}
		return f.kafka(address.Host, config, username, password, refused, allowed, messageBytes), nil
	}
	return f.mqtt(address.Host, config, username, password, refused, messageBytes), nil
}

func (f *brokerFlags) mqtt(address string, config *tls.Config, username, password string, refused egress.Networks, messageBytes int) broker.Driver {
	return &mqtt.Driver{
		Address: address, TLS: config, Username: username, Password: password, QoS: deliveries[f.delivery],
		Timeout: f.deliveryTimeout(), Gathers: f.tuning == broker.Heavy, Refused: refused, MessageBytes: messageBytes,
	}
}

func (f *brokerFlags) kafka(
	address string, config *tls.Config, username, password string, refused egress.Networks, allowed egress.Hosts, messageBytes int,
) broker.Driver {
	return &kafka.Driver{
		Address: address, ServerName: f.serverName, TLS: config, Username: username, Password: password, Delivery: f.delivery,
		Codec: f.codec, Partitions: int32(f.partitions), Linger: time.Duration(f.linger) * time.Millisecond,
		BatchBytes: int32(f.batch), MessageBytes: int32(messageBytes), Timeout: f.deliveryTimeout(),
		Quick: f.tuning == broker.Light, Buffered: f.buffered(), Refused: refused, Allowed: allowed,
	}
}

// buffered returns the window, if returned messages do not limit it.
func (f *brokerFlags) buffered() int {
	if f.role == string(broker.Alone) {
		return f.window
	}
	return moreThanWindow
}

func (f *brokerFlags) deliveryTimeout() time.Duration {
	return time.Duration(f.deliveryTimeoutMilliseconds) * time.Millisecond
}
