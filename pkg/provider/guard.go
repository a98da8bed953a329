// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
)

// Within returns the transport for calls to hosts that the policy allows. A tenant may name any Git
// service. So each request, redirects included, is checked by the host's name, and each connection
// by the address that the name has at that time.
func (t *Transport) Within(policy egress.Policy) http.RoundTripper {
	return &guarded{Transport: t, policy: policy}
}

type guarded struct {
	*Transport
	policy egress.Policy
}

// RoundTrip implements http.RoundTripper, except that a status of 400 or more is an error.
func (g *guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	start := time.Now()
	base, err := g.transport(req)
	var resp *http.Response
	if err == nil {
		resp, err = g.call(base, req)
	}
	g.metrics.observe(req.Context(), g.Provider, err, time.Since(start))
	return resp, err
}

// transport returns the transport that sends the request.
func (g *guarded) transport(req *http.Request) (http.RoundTripper, error) {
	proxy, err := http.ProxyFromEnvironment(req)
	if err != nil {
		return nil, fault.Operatorf(reasonBadProxy, "HTTPS_PROXY or HTTP_PROXY of the controller is not a URL: correct it in its Deployment")
	}
	if _, err := g.policy.Name(req.URL, proxy != nil); err != nil {
		return nil, addressRefused(req, err)
	}
	if proxy != nil { // which resolves the name, and may itself be anywhere
		return g.proxied, nil
	}
	return g.direct(g.policy), nil
}

// maxPolicies is how many policies have connections at the same time. Tenants' policies and the
// global Repository's alternate, and a changed configuration adds more. The connections of an
// evicted policy are closed once they are idle for IdleConnTimeout.
const maxPolicies = 4

// direct returns the connection pool of the policy. Connections of another policy are never used,
// because that one may allow hosts that this one does not.
func (t *Transport) direct(policy egress.Policy) *http.Transport {
	return t.guarded.GetOrCreate(policy.Key(), func() *http.Transport {
		pool := t.pool()
		pool.DialContext = t.dialer(policy)
		return pool
	})
}

func (t *Transport) dialer(policy egress.Policy) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, to string) (net.Conn, error) {
		allowed, err := policy.Name(&url.URL{Scheme: "https", Host: to}, false)
		if err != nil {
			return nil, err
		}
		dialer := &net.Dialer{
			Timeout: t.limits.Connect, KeepAlive: keepAlive, Resolver: t.resolver,
			ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
				return policy.Dial(address, allowed)
			},
		}
		return dialer.DialContext(ctx, network, to)
	}
}

// addressRefused returns nil unless err is the policy's. The message does not contain the address
// that an internal name resolves to: a tenant may have named the Git service, and must not learn
// about the installation's network.
func addressRefused(req *http.Request, err error) error {
	var refused *egress.RefusedError
	if !errors.As(err, &refused) {
		return nil
	}
	why := refused.Why
	if refused.Resolved {
		why = "it resolves to an address that is not public"
	}
	host := req.URL.Hostname()
	return fault.Operatorf(
		ReasonAddressRefused,
		"%s is not called: %s. If it is your Git service, the administrator of Plumbline "+
			"adds %s to git-allowed-hosts in Plumbline's ConfigMap, and takes it from remote-refused-hosts if it is there",
		host,
		why,
		host,
	)
}

// ReasonAddressRefused is the reason of an Operator fault: the installation may not call the Git
// service's address unless the administrator allows it.
const ReasonAddressRefused = "AddressRefused"
