// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"syscall"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
)

// guard is the transport of one fetch. It checks every request, including redirects.
type guard struct {
	options Options
	policy  egress.Policy
}

// RoundTrip implements http.RoundTripper. Each request has its own transport and connection, so a
// connection that another policy allowed is never reused.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	u := request.URL
	if _, err := parseAddress(u.String()); err != nil {
		return nil, err
	}
	proxy, err := g.options.Proxy(request)
	if err != nil {
		return nil, fault.Operatorf(reasonBadProxy, "HTTPS_PROXY or HTTP_PROXY of the controller is not a URL: correct it in its Deployment")
	}
	allowed, err := g.policy.Name(u, proxy != nil)
	if err != nil {
		return nil, refused(err)
	}
	dialer := &net.Dialer{Timeout: g.options.Limits.Connect}
	if proxy == nil {
		dialer.Resolver = g.options.Resolver
		dialer.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			return refused(g.policy.Dial(address, allowed))
		}
	}
	transport := &http.Transport{
		Proxy:                  http.ProxyURL(proxy),
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    g.options.Limits.Connect,
		ResponseHeaderTimeout:  g.options.Limits.Headers,
		MaxResponseHeaderBytes: maxHeaders,
		DisableKeepAlives:      true,
	}
	return transport.RoundTrip(request)
}

// maxHeaders is the maximum size of an answer's headers in bytes.
const maxHeaders = 64 << 10

// refused returns the fault of an address that an author must not refer to.
func refused(err error) error {
	var f *egress.RefusedError
	if !errors.As(err, &f) {
		return err
	}
	return fault.Invalidf(reasonAddressRefused, "%s is not fetched from: %s (the ConfigMap's remote-allowed-hosts and "+
		"remote-refused-hosts decide)", f.Host, f.Why)
}
