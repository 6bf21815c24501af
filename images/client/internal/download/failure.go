package download

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"

	"tierbench.io/client/internal/contract"
)

// retryable is an end of an attempt that another attempt may mend.
type retryable struct {
	cause string
	err   error
}

func (r *retryable) Error() string { return r.cause + ": " + r.err.Error() }

func (r *retryable) Unwrap() error { return r.err }

func retry(cause string, err error) error { return &retryable{cause, err} }

func fatal(reason, message string) error { return &contract.Failure{Reason: reason, Message: message} }

// whileConnecting names the cause of a connection that did not come about.
func whileConnecting(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return retry(contract.Refused, err)
	}
	return retry(contract.Unreachable, err)
}

// whileShakingHands names the cause of a TLS handshake that failed; what a second try cannot mend is fatal.
func whileShakingHands(err error) error {
	var certificate *tls.CertificateVerificationError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &certificate):
		return fatal("CertificateRefused", err.Error()+": is --ca-file the CA of this server, and --server-name in its certificate?")
	case errors.As(err, &alert), errors.As(err, &record):
		return fatal("TLSFailed", err.Error()+": does the server offer this version of TLS on this port?")
	}
	return whileReading(err)
}

// whileReading names the cause of a transfer that broke off.
func whileReading(err error) error {
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, net.ErrClosed):
		return context.Canceled
	case errors.As(err, &timeout) && timeout.Timeout():
		return retry(contract.Stalled, err)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return retry(contract.Reset, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return retry(contract.Truncated, err)
	}
	return retry(contract.Reset, err)
}
