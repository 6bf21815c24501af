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

// Refusal returns the reason why a connection failed: a *contract.Failure if a retry cannot succeed, else err. asked says whether
// the broker has asked for a certificate of the client.
func Refusal(err error, secured, asked bool) error {
	var known *contract.Failure
	var expired x509.CertificateInvalidError
	var unverified *tls.CertificateVerificationError
	var alert tls.AlertError
	var during askedError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &expired) && expired.Reason == x509.Expired:
		return Failure("CertificateExpired", "the broker's certificate is not valid now: renew it, and check the clock of this node", err)
	case errors.As(err, &unverified):
		return Failure("CertificateUnknown", "ca.crt is not the CA of the broker's certificate, or the certificate has another name", err)
	case (asked || errors.As(err, &during)) && (isAlert(err) || wasCut(err)):
		return Failure("ClientCertificateRefused", "the broker requires a certificate of the client, and got none or refuses it: check tls.crt and tls.key, and tlsClients.certificates", err)
	case errors.As(err, &alert), isVersion(err):
		return Failure("TlsVersionRefused", "the broker does not support this version of TLS: choose another one", err)
	case secured && wasCut(err):
		return Failure("TlsVersionRefused", "the broker ends the TLS handshake: check that it supports this version of TLS on this port", err)
	}
	return err
}

// askedError is the error of a handshake in which the broker asked for a certificate of the client.
type askedError struct{ error }

func (a askedError) Unwrap() error { return a.error }

// Failure returns a failure with its cause.
func Failure(reason, hint string, err error) error {
	return &contract.Failure{Reason: reason, Message: fmt.Sprintf("%s (%v)", hint, err)}
}

func isAlert(err error) bool { return strings.Contains(err.Error(), "remote error: tls") }

func isVersion(err error) bool {
	var header tls.RecordHeaderError
	return errors.As(err, &header) || strings.Contains(err.Error(), "protocol version")
}

func wasCut(err error) bool {
	var network net.Error
	timedOut := errors.As(err, &network) && network.Timeout() || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
	return !timedOut && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET))
}
