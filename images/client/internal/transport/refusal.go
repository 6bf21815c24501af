package transport

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

	"tierbench.io/client/internal/contract"
)

// Refusal returns the reason why a connection failed: a *contract.Failure if a retry cannot succeed, else err.
func Refusal(err error, secured bool) error {
	var known *contract.Failure
	var expired x509.CertificateInvalidError
	var unverified *tls.CertificateVerificationError
	var alert tls.AlertError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &expired) && expired.Reason == x509.Expired:
		return Failure("CertificateExpired", "the broker's certificate is not valid now: renew it, and check the clock of this node", err)
	case errors.As(err, &unverified):
		return Failure("CertificateUnknown", "ca.crt is not the CA of the broker's certificate, or the certificate has another name", err)
	case errors.As(err, &alert), isVersion(err):
		return Failure("TlsVersionRefused", "the broker does not support this version of TLS: choose another one", err)
	case secured && wasCut(err):
		return Failure("TlsVersionRefused", "the broker ends the TLS handshake: check that it supports this version of TLS on this port", err)
	}
	return err
}

// Failure returns a failure with its cause.
func Failure(reason, hint string, err error) error {
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
