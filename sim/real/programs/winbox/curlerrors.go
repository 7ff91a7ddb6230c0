package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
)

// explain finds curl's code for a failure.
func (t *transfer) explain(err error) *curlError {
	var known *curlError
	if errors.As(err, &known) {
		return known
	}
	ms := time.Since(t.begin).Milliseconds()
	var unknown *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var timed net.Error
	text := err.Error()
	switch {
	case errors.Is(err, errSlow), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timed) && timed.Timeout():
		if t.connected == 0 {
			return &curlError{28, fmt.Sprintf("Connection timed out after %d milliseconds", ms)}
		}
		return &curlError{28, fmt.Sprintf("Operation timed out after %d milliseconds with %d bytes received", ms, t.size)}
	case errors.As(err, &unknown):
		// What Schannel says, with which Windows builds its curl.
		return &curlError{60,
			"schannel: SEC_E_UNTRUSTED_ROOT (0x80090325) - The certificate chain was issued by an authority that is not trusted."}
	case errors.As(err, &record):
		return &curlError{35,
			"schannel: next InitializeSecurityContext failed: SEC_E_INVALID_TOKEN (0x80090308) - The token supplied to the function is invalid"}
	case errors.As(err, &alert), strings.Contains(text, "tls:"):
		return &curlError{35, "schannel: failed to receive handshake, SSL/TLS connection failed"}
	case errors.Is(err, syscall.ECONNRESET), strings.Contains(text, "connection reset"), strings.Contains(text, "forcibly closed"):
		if strings.HasPrefix(t.effective, "https:") && t.status == 0 {
			return &curlError{35, "Recv failure: Connection was reset"}
		}
		return &curlError{56, "Recv failure: Connection was reset"}
	case errors.Is(err, io.EOF), strings.Contains(text, "server closed idle connection"):
		if strings.HasPrefix(t.effective, "https:") && t.status == 0 {
			return &curlError{35, "schannel: failed to receive handshake, SSL/TLS connection failed"}
		}
		return &curlError{52, "Empty reply from server"}
	case strings.Contains(text, "malformed HTTP"):
		return &curlError{1, "Received HTTP/0.9 when not allowed"}
	}
	return &curlError{56, "Failure when receiving data from the peer: " + text}
}

// plain is how Windows words an error of a connection.
func plain(err error) string {
	var timed net.Error
	switch {
	case errors.As(err, &timed) && timed.Timeout():
		return "Timed out"
	case errors.Is(err, syscall.ECONNREFUSED), strings.Contains(err.Error(), "refused"):
		return "Connection refused"
	}
	return err.Error()
}
