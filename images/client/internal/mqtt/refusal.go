package mqtt

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"tierbench.io/client/internal/contract"
)

// refusal names why a connection did not come about: a *contract.Failure if another try cannot mend it.
func (c *connection) refusal(err error) error {
	c.mutex.Lock()
	if c.dialFailed != nil {
		err = c.dialFailed
	}
	c.mutex.Unlock()
	var expired x509.CertificateInvalidError
	var unverified *tls.CertificateVerificationError
	var alert tls.AlertError
	switch {
	case errors.Is(err, packets.ErrorRefusedBadUsernameOrPassword), errors.Is(err, packets.ErrorRefusedNotAuthorised):
		return failure("CredentialsRefused", "the broker refuses user and password: are they those that it knows?", err)
	case errors.As(err, &expired) && expired.Reason == x509.Expired:
		return failure("CertificateExpired", "the broker's certificate is not valid now: renew it, and see this node's clock", err)
	case errors.As(err, &unverified):
		return failure("CertificateUnknown", "ca.crt is not the CA of the broker's certificate, or that bears another name", err)
	case errors.As(err, &alert), isVersion(err):
		return failure("TlsVersionRefused", "the broker does not take this version of TLS: choose another", err)
	case wasCut(err) && c.driver.TLS != nil:
		return failure("TlsVersionRefused", "the broker ends the TLS handshake: does it speak TLS, in this version, on this port?", err)
	}
	return err
}

func failure(reason, hint string, err error) error {
	return &contract.Failure{Reason: reason, Message: fmt.Sprintf("%s (%v)", hint, err)}
}

func isVersion(err error) bool {
	var header tls.RecordHeaderError
	return errors.As(err, &header) || strings.Contains(err.Error(), "protocol version")
}

func wasCut(err error) bool {
	var network net.Error
	timedOut := errors.As(err, &network) && network.Timeout() || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
	return !timedOut && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET))
}
