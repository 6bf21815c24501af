package transfer

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"

	"tierbench.io/client/internal/contract"
)

// retryable is the failure of an attempt after which another attempt may succeed.
type retryable struct {
	cause string
	err   error
}

func (r *retryable) Error() string { return r.cause + ": " + r.err.Error() }

func (r *retryable) Unwrap() error { return r.err }

func retry(cause string, err error) error { return &retryable{cause, err} }

func fatal(reason, message string) error { return &contract.Failure{Reason: reason, Message: message} }

// whileConnecting returns the cause of a connection that was not established.
func whileConnecting(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return retry(contract.Refused, err)
	}
	return retry(contract.Unreachable, err)
}

// whileShakingHands returns the cause of a failed TLS handshake. It is fatal if a retry cannot succeed.
func whileShakingHands(err error) error {
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return fatal("CertificateRefused", err.Error()+": check that caFile is the CA of this server, and serverName a name in its certificate")
	}
	if cause := breaking(err); cause != "" {
		return retry(cause, err)
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	return fatal("TLSFailed", err.Error()+": check that the server supports this version of TLS on this port")
}

// whileReading returns the cause of a transfer that broke off. Content that cannot be parsed is corrupt.
func whileReading(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, net.ErrClosed) {
		return context.Canceled
	}
	if cause := breaking(err); cause != "" {
		return retry(cause, err)
	}
	return retry(contract.Corrupt, err)
}

// breaking returns the cause if an error means that the connection broke. It is empty if the error is about the content.
func breaking(err error) string {
	var timeout net.Error
	var number syscall.Errno
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return contract.Stalled
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return contract.Unreachable
	case errors.As(err, &number):
		return contract.Reset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return contract.Truncated
	}
	return ""
}
