// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// Policy says which hosts may be called besides the public internet, and which may not.
type Policy struct {
	// Allowed hosts may be called although their address is not public.
	Allowed Hosts
	// Refused hosts may not be called, whatever else allows them.
	Refused Hosts
	// Trusted is the host and port of an address that an operator configured, which may therefore
	// be called.
	Trusted string
}

// Key is the same for equal policies.
func (p Policy) Key() string {
	return strings.Join(p.Allowed, ",") + ";" + strings.Join(p.Refused, ",") + ";" + p.Trusted
}

// RefusedError says why a host is not called.
type RefusedError struct {
	// Host is the host as written, or "the host" where it must not be repeated.
	Host string
	// Why is the reason for people.
	Why string
	// Resolved is true if Why contains the address that the host's name resolves to.
	Resolved bool
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Host + " is not called: " + e.Why }

func refused(host, why string) error { return &RefusedError{Host: host, Why: why} }

// Name checks a host by its name. allowed is true if the configuration allows every address that it
// resolves to. If a proxy resolves the name, this is the only check.
func (p Policy) Name(u *url.URL, proxied bool) (allowed bool, err error) {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	ip, isIP := address(host)
	switch {
	case !isIP && (!hostName.MatchString(host) || numeric(host)):
		// Resolvers and proxies read such names differently.
		return false, refused(
			"the host",
			"it is neither a name of ASCII letters, digits and dashes (others are written in their "+
				"xn-- form) nor an address (IPv4 is written as four decimal numbers with dots)",
		)
	case p.Refused.hasName(host):
		return false, refused(u.Host, "the configuration refuses it")
	case p.Allowed.hasName(host), p.Trusted != "" && withPort(u) == p.Trusted:
		return true, p.checkNumber(u, ip, true)
	case isIP:
		return false, p.checkNumber(u, ip, false)
	case internal(host, proxied):
		return false, refused(u.Host, "it is a name inside the cluster or its network")
	}
	return false, nil
}

// checkNumber checks an address that is written in place of a name. The zero address means that
// there is none, and passes.
func (p Policy) checkNumber(u *url.URL, ip netip.Addr, allowed bool) error {
	switch {
	case !ip.IsValid():
		return nil
	case p.Refused.hasAddress(ip):
		return refused(u.Host, "the configuration refuses it")
	case !allowed && !public(ip) && !p.Allowed.hasAddress(ip):
		return refused(u.Host, "it is not a public address")
	}
	return nil
}

// Dial checks the address that is about to be connected to, after the name was resolved: a name may
// resolve to another address at each look-up.
func (p Policy) Dial(hostport string, allowed bool) error {
	at, err := netip.ParseAddrPort(hostport)
	if err != nil {
		return refused("the host", "its address cannot be read")
	}
	ip := at.Addr().WithZone("").Unmap()
	switch {
	case p.Refused.hasAddress(ip):
		return refused(ip.String(), "the configuration refuses it")
	case !allowed && !public(ip) && !p.Allowed.hasAddress(ip):
		return &RefusedError{
			Host:     "the host",
			Why:      "it resolves to " + ip.String() + ", which is not a public address",
			Resolved: true,
		}
	}
	return nil
}

// HostPort returns the host and port of an address, for Policy.Trusted; "" if it has none.
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
