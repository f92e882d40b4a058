package load

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"syscall"
)

// kind is one of few words for an error, so that errors can be counted.
func kind(err error) string {
	var dns *net.DNSError
	var verify *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, ErrRemote):
		return "remote"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection lost"
	case errors.As(err, &dns):
		return "no such host"
	case errors.As(err, &verify), errors.As(err, &unknown), errors.As(err, &record):
		return "tls"
	}
	return "error"
}
