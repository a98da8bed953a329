// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Policy says what a fetch may reach besides the public internet, and what it may not.
type Policy struct {
	// Allowed may be reached although its address is not public.
	Allowed Hosts
	// Refused may not be reached, whatever else is allowed.
	Refused Hosts
	// Trusted is the host and port of an address that an operator configured, and may be reached because of that.
	Trusted string
}

// guard is the transport of one fetch: it judges every request, redirects included.
type guard struct {
	options Options
	policy  Policy
}

// RoundTrip implements http.RoundTripper. Each request has a transport and a connection of its own: a connection that
// another policy allowed is never used again.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	u := request.URL
	if _, err := parseAddress(u.String()); err != nil {
		return nil, err
	}
	proxy, err := g.options.Proxy(request)
	if err != nil {
		return nil, fault.Operatorf("BadProxy", "the proxy of the controller's environment is not a URL")
	}
	allowed, err := g.policy.name(u, proxy != nil)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: g.options.Limits.Connect}
	if proxy == nil {
		dialer.Resolver = g.options.Resolver
		dialer.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			return g.policy.dial(address, allowed)
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

// maxHeaders bounds an answer's headers, in bytes.
const maxHeaders = 64 << 10

// name judges a host by its name, and tells whether configuration allows whatever it resolves to. This is all that can
// be judged when a proxy resolves the name.
func (p Policy) name(u *url.URL, proxied bool) (allowed bool, err error) {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	ip, isIP := address(host)
	switch {
	case !isIP && (!hostName.MatchString(host) || numeric(host)):
		// Resolvers and proxies read such names in different ways.
		return false, refused("the host", "it is neither a name of ASCII letters, digits and dashes (others are written in their "+
			"xn-- form) nor an address (IPv4 is written as four decimal numbers with dots)")
	case p.Refused.names(host):
		return false, refused(u.Host, "the configuration refuses it")
	case p.Allowed.names(host), p.Trusted != "" && withPort(u) == p.Trusted:
		return true, p.number(u, ip, true)
	case isIP:
		return false, p.number(u, ip, false)
	case internal(host, proxied):
		return false, refused(u.Host, "it is a name inside the cluster or its network")
	}
	return false, nil
}

// number judges an address that is written in place of a name; the zero address is none and is let through.
func (p Policy) number(u *url.URL, ip netip.Addr, allowed bool) error {
	switch {
	case !ip.IsValid():
		return nil
	case p.Refused.holds(ip):
		return refused(u.Host, "the configuration refuses it")
	case !allowed && !public(ip) && !p.Allowed.holds(ip):
		return refused(u.Host, "it is not a public address")
	}
	return nil
}

// dial judges the address that is about to be connected to, after the name was resolved: what a name resolves to may
// change between two look-ups.
func (p Policy) dial(hostport string, allowed bool) error {
	at, err := netip.ParseAddrPort(hostport)
	if err != nil {
		return refused("the host", "its address cannot be read")
	}
	ip := at.Addr().WithZone("").Unmap()
	switch {
	case p.Refused.holds(ip):
		return refused(ip.String(), "the configuration refuses it")
	case !allowed && !public(ip) && !p.Allowed.holds(ip):
		return refused("the host", "it resolves to "+ip.String()+", which is not a public address")
	}
	return nil
}

func refused(host, why string) error {
	return fault.Invalidf("AddressRefused", "%s is not fetched from: %s (the ConfigMap's remote-allowed-hosts and "+
		"remote-refused-hosts decide)", host, why)
}

// HostPort is the host and port of an address, as Policy.Trusted takes them; "" if it has none.
func HostPort(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	return withPort(u)
}

func withPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
