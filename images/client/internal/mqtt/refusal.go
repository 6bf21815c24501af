package mqtt

import (
	"errors"
	"fmt"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/transport"
)

// unanswered is why a subscription fails.
var unanswered = &contract.Failure{Reason: "BrokerUnreachable", Message: "the broker does not answer a subscription: see its log"}

// refusal returns the reason why a connection failed: a *contract.Failure if a retry cannot succeed.
func (c *connection) refusal(err error) error {
	c.mutex.Lock()
	if c.dialFailed != nil {
		err = c.dialFailed
	}
	c.mutex.Unlock()
	return c.link.refusal(err)
}

func (l *link) refusal(err error) error {
	switch {
	case errors.Is(err, packets.ErrorRefusedBadUsernameOrPassword), errors.Is(err, packets.ErrorRefusedNotAuthorised):
		return transport.Failure("CredentialsRefused", "the broker refuses the user or the password: check both", err)
	case errors.Is(err, packets.ErrorRefusedBadProtocolVersion):
		return transport.Failure("MqttVersionRefused", "the broker does not speak this version of MQTT: choose another one", err)
	}
	l.mutex.Lock()
	asked := l.certified
	l.mutex.Unlock()
	return transport.Refusal(err, l.driver.TLS != nil, asked)
}

// isGranted returns why the answer to a subscription is not good enough.
func (d *Driver) isGranted(topic string, granted byte) error {
	switch {
	case granted > 2:
		message := fmt.Sprintf("the broker refuses the subscription to %s: allow it to this user", topic)
		return &contract.Failure{Reason: "NotAuthorized", Message: message}
	case granted < d.QoS:
		return d.lowerQoS(granted)
	}
	return nil
}

func (d *Driver) lowerQoS(granted byte) error {
	message := fmt.Sprintf("the broker grants QoS %d instead of %d: raise its limit, or choose another delivery", granted, d.QoS)
	return &contract.Failure{Reason: "LowerQosGranted", Message: message}
}
