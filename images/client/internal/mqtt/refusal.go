package mqtt

import (
	"errors"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"tierbench.io/client/internal/transport"
)

// refusal returns the reason why a connection failed: a *contract.Failure if a retry cannot succeed.
func (c *connection) refusal(err error) error {
	c.mutex.Lock()
	if c.dialFailed != nil {
		err = c.dialFailed
	}
	c.mutex.Unlock()
	if errors.Is(err, packets.ErrorRefusedBadUsernameOrPassword) || errors.Is(err, packets.ErrorRefusedNotAuthorised) {
		return transport.Failure("CredentialsRefused", "the broker refuses the user or the password: check both", err)
	}
	return transport.Refusal(err, c.driver.TLS != nil)
}
