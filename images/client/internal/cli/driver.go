//go:build linux

package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strconv"
	"strings"

	"tierbench.io/client/internal/broker"
	"tierbench.io/client/internal/egress"
	"tierbench.io/client/internal/engine"
	"tierbench.io/client/internal/kafka"
	"tierbench.io/client/internal/mqtt"
	"tierbench.io/client/internal/payload"
	"tierbench.io/client/internal/plan"
	"tierbench.io/client/internal/post"
	"tierbench.io/client/internal/tlsconfig"
)

const (
	kafkaScheme    = "kafka"
	httpScheme     = "http"
	moreThanWindow = 1 << 17
)

// schemes are the schemes of brokers, and whether each uses TLS.
var schemes = map[string]bool{"mqtt": false, "mqtts": true, kafkaScheme: false, kafkaScheme + "s": true, httpScheme: false, httpScheme + "s": true}

// account identifies a client to a broker.
type account struct{ username, password string }

// newDriver returns the driver for the broker of a target, for messages of a pool. It is the engine's if there is one.
func newDriver(given *plan.BrokerPlan, target *plan.BrokerTarget, content *payload.Pool, program *engine.Engine) (broker.Driver, error) {
	address, err := url.Parse(target.URL)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	secured, known := schemes[address.Scheme]
	switch {
	case !known || address.Port() == "":
		return nil, fmt.Errorf("url is %q: write mqtt://HOST:PORT, kafka://HOST:PORT or http://HOST:PORT/PATH, with TLS mqtts://, kafkas:// or https://", target.URL)
	case secured != (given.TLS != "None"):
		return nil, fmt.Errorf("url begins with %s and tls is %s: mqtts, kafkas and https need TLSv1.2 or TLSv1.3, mqtt, kafka and http None", address.Scheme, given.TLS)
	}
	name := given.ServerName
	if name == "" {
		name = address.Hostname()
	}
	config, err := clientSide(given, target, name)
	if err != nil {
		return nil, err
	}
	user, err := accountOf(given, target)
	if err != nil {
		return nil, err
	}
	refused, err := egress.Parse(given.RefusedNetworks)
	if err != nil {
		return nil, fmt.Errorf("refusedNetworks: %w: write networks, as in 127.0.0.0/8", err)
	}
	if strings.HasPrefix(address.Scheme, httpScheme) {
		return postDriver(given, address, config, user, refused)
	}
	if program != nil {
		return engineDriver(given, target, address, name, user, refused, program)
	}
	messageBytes := len(content.Content(content.Largest()))
	if strings.HasPrefix(address.Scheme, kafkaScheme) {
		return kafkaDriver(given, address.Host, config, user, refused, messageBytes)
	}
	return &mqtt.Driver{
		Address: address.Host, TLS: config, Username: user.username, Password: user.password, QoS: deliveries[given.Delivery],
		Timeout: milliseconds(given.DeliveryTimeoutMilliseconds), Gathers: given.Tuning == broker.Heavy, Refused: refused,
		MessageBytes: messageBytes, Version: given.MQTT.Version,
	}, nil
}

// accountOf returns the account of a client. A Secret may have no password, and with TLS the CA alone.
func accountOf(given *plan.BrokerPlan, target *plan.BrokerTarget) (account, error) {
	username, noUsername := wordIn("usernameFile", target.UsernameFile)
	password, noPassword := wordIn("passwordFile", target.PasswordFile)
	if isAbsent(noPassword) {
		noPassword = nil
	}
	if isAbsent(noUsername) && given.TLS != "None" && password == "" {
		noUsername = nil
	}
	return account{username, password}, errors.Join(noUsername, noPassword)
}

func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// clientSide returns how the client uses TLS; nil without.
func clientSide(given *plan.BrokerPlan, target *plan.BrokerTarget, name string) (*tls.Config, error) {
	config, err := tlsconfig.New(given.TLS, target.CAFile, name)
	if config == nil || err != nil {
		return nil, err
	}
	if given.ResumeSessions {
		config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	}
	if target.ClientCertificateFile == "" {
		return config, nil
	}
	return config, tlsconfig.Present(config, target.ClientCertificateFile, target.ClientKeyFile)
}

func postDriver(given *plan.BrokerPlan, address *url.URL, config *tls.Config, user account, refused egress.Networks) (broker.Driver, error) {
	switch {
	case given.Role != string(broker.Alone) || deliveries[given.Delivery] != 1 || given.Engine != "":
		return nil, errors.New("an HTTP server passes no message on: write role Alone, delivery AtLeastOnce and no engine")
	case given.Pacing.InFlight > 1:
		return nil, errors.New("a connection of HTTP/1.1 carries one message at a time: write inFlight 1, or more pairs")
	}
	made := &post.Driver{
		Address: address.Host, Host: given.ServerName, Target: address.RequestURI(), TLS: config, Username: user.username, Password: user.password,
		Timeout: milliseconds(given.DeliveryTimeoutMilliseconds), Quick: given.Tuning == broker.Light, Refused: refused,
	}
	if made.Host == "" {
		made.Host = address.Host
	}
	return made, nil
}

func engineDriver(
	given *plan.BrokerPlan, target *plan.BrokerTarget, address *url.URL, name string, user account, refused egress.Networks,
	program *engine.Engine,
) (broker.Driver, error) {
	port, err := strconv.ParseUint(address.Port(), 10, 16)
	if err != nil {
		return nil, fmt.Errorf("url is %q: %w", target.URL, err)
	}
	return &engine.Driver{Engine: program, Refused: refused, Broker: engine.Broker{
		Scheme: address.Scheme, Host: address.Hostname(), Port: int(port), TLS: given.TLS, ServerName: name, CAFile: target.CAFile,
		Username: user.username, Password: user.password, Delivery: given.Delivery, MQTTVersion: mqttVersion(given, address),
		Compression: given.Compression, Encryption: given.Encryption, KeyFile: given.KeyFile,
	}}, nil
}

// mqttVersion returns the version that an engine is to speak, which is empty for Kafka.
func mqttVersion(given *plan.BrokerPlan, address *url.URL) string {
	if strings.HasPrefix(address.Scheme, kafkaScheme) {
		return ""
	}
	return given.MQTT.Version
}

func kafkaDriver(
	given *plan.BrokerPlan, address string, config *tls.Config, user account, refused egress.Networks, messageBytes int,
) (broker.Driver, error) {
	allowed, err := egress.ParseHosts(given.Kafka.AllowedHosts)
	if err != nil {
		return nil, fmt.Errorf("kafka.allowedHosts: %w: write networks and names, as in 10.0.0.0/8 and *.example.com", err)
	}
	return &kafka.Driver{
		Address: address, ServerName: given.ServerName, TLS: config, Username: user.username, Password: user.password, Delivery: given.Delivery,
		Codec: given.Kafka.Codec, Partitions: int32(given.Kafka.Partitions), Linger: milliseconds(given.Kafka.LingerMilliseconds),
		BatchBytes: int32(given.Kafka.BatchBytes), MessageBytes: int32(messageBytes), Timeout: milliseconds(given.DeliveryTimeoutMilliseconds),
		Quick: given.Tuning == broker.Light, Buffered: buffered(given), Refused: refused, Allowed: allowed,
	}, nil
}

// buffered returns the window, if returned messages do not limit it.
func buffered(given *plan.BrokerPlan) int {
	if given.Role == string(broker.Alone) {
		return given.MaxInFlight
	}
	return moreThanWindow
}
