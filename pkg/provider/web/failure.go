// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// refusal classifies an answer by its status; nil means a 2xx. The message is made from the status
// only, because the body is not trusted.
func refusal(response *http.Response) error {
	code, host := response.StatusCode, response.Request.URL.Host
	status := http.StatusText(code)
	switch {
	case code >= http.StatusOK && code < http.StatusMultipleChoices:
		return nil
	case code == http.StatusNotFound, code == http.StatusGone:
		return fault.Invalidf(reasonReferenceNotFound, "%s answers %d %s: there is nothing at this address",
			host, code, status)
	}
	// Limits and outages are recognized like those of a Git service: by status and headers.
	f := fault.FromHTTP(response, nil, nil)
	switch {
	case f != nil && f.Class == fault.Throttled:
		return fault.Throttledf(f.Reason, f.RetryAfter, "%s asks to come back later", host)
	case f != nil && f.Class == fault.Transient && code != http.StatusConflict:
		return fault.Transientf(reasonReferenceUnavailable, "%s answers %d %s", host, code, status)
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return fault.Invalidf(reasonNotPublic,
			"%s answers %d %s: it is fetched without credentials, so make it public, or copy it into the repository", host, code,
			status)
	}
	return fault.Invalidf(reasonReferenceNotFound, "%s answers %d %s", host, code, status)
}

const reasonNotPublic = "ReferenceNotPublic"

// unanswered classifies a fetch without a complete answer. The message has no ephemeral port, so
// that it is the same each time.
func unanswered(host string, err error) error {
	var own *fault.Error
	if errors.As(err, &own) {
		return own
	}
	var timeout net.Error
	var op *net.OpError
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.Canceled):
		return fault.Transientf(fault.ReasonCanceled, "fetching from %s was interrupted", host)
	case errors.As(err, &dns):
		return fault.Transientf(reasonReferenceUnavailable, "%s cannot be found in the DNS: is its name right?", host)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fault.Transientf(reasonReferenceUnavailable, "%s did not answer in time", host)
	case errors.As(err, &certificate):
		return fault.Transientf(reasonReferenceUnavailable, "the certificate of %s is not trusted: %v", host, certificate.Err)
	case errors.As(err, &op):
		return fault.Transientf(reasonReferenceUnavailable, "%s: %s: %v", host, op.Op, op.Err)
	}
	return fault.Transientf(reasonReferenceUnavailable, "%s did not answer in HTTP", host)
}
