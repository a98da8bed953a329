// SPDX-License-Identifier: Apache-2.0

// Package egress decides which addresses may be called that were not named by the administrator but
// by an author of a reference, or by a tenant who names a Git service.
package egress

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// Hosts is a list of host names ("git.example.com"), subdomains ("*.example.com"), IP addresses and
// networks ("10.20.0.0/16"), in lower case.
type Hosts []string

// Parse parses a comma-separated list. The error names the wrong entry.
func Parse(list string) (Hosts, error) {
	var hosts Hosts
	for _, entry := range strings.Split(list, ",") {
		entry = strings.ToLower(strings.TrimSpace(entry))
		if entry == "" {
			continue
		}
		if !validHost(entry) {
			return nil, fmt.Errorf("%q is not a host name, *.name, an IP address or a network", entry)
		}
		hosts = append(hosts, entry)
	}
	return hosts, nil
}

var hostName = regexp.MustCompile(`^(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

func validHost(entry string) bool {
	if _, isIP := address(entry); isIP {
		return true
	}
	if prefix, err := netip.ParsePrefix(entry); err == nil {
		return prefix.Addr().Zone() == ""
	}
	return hostName.MatchString(entry) && !numeric(entry)
}

// hasName reports whether the list has a host, given in lower case without a trailing dot.
func (h Hosts) hasName(host string) bool {
	return slices.ContainsFunc(h, func(entry string) bool {
		if below, wild := strings.CutPrefix(entry, "*."); wild {
			return strings.HasSuffix(host, "."+below)
		}
		return entry == host
	})
}

// hasAddress reports whether the list has an address.
func (h Hosts) hasAddress(ip netip.Addr) bool {
	if v4, is := translated(ip); is && h.hasAddress(v4) {
		return true
	}
	return slices.ContainsFunc(h, func(entry string) bool {
		if own, isIP := address(entry); isIP {
			return own == ip
		}
		prefix, err := netip.ParsePrefix(entry)
		return err == nil && (prefix.Contains(ip) || ip.Is4() && prefix.Contains(netip.AddrFrom16(ip.As16())))
	})
}

// address parses an IP address in its canonical form; IPv4 in IPv6 is IPv4.
func address(host string) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(host)
	return ip.WithZone("").Unmap(), err == nil
}

// numericLabel matches the end of a host that some resolvers and proxies read as an IPv4 address:
// 2130706433, 0x7f.1, 127.1.
var numericLabel = regexp.MustCompile(`^([0-9]+|0x[0-9a-f]*)$`)

func numeric(host string) bool {
	return numericLabel.MatchString(host[strings.LastIndex(host, ".")+1:])
}

// internal reports whether a name can only be one of the cluster or its network. A name without a
// dot is decided by the address that it resolves to, unless a proxy resolves it.
func internal(host string, proxied bool) bool {
	if proxied && !strings.Contains(host, ".") {
		return true
	}
	for _, suffix := range []string{"localhost", "svc", "cluster.local", "local", "internal", "intranet", "home.arpa"} {
		if host == suffix || strings.HasSuffix(host, "."+suffix) {
			return true
		}
	}
	return strings.Contains(host, ".svc.")
}

// public reports whether an address belongs to the public internet. IPv6 addresses are public only
// in 2000::/3, and those of NAT64 if the IPv4 address in them is.
func public(ip netip.Addr) bool {
	if v4, is := translated(ip); is {
		ip = v4
	}
	if !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false
	}
	if ip.Is6() && !netip.MustParsePrefix("2000::/3").Contains(ip) {
		return false
	}
	return !slices.ContainsFunc(special(), func(prefix netip.Prefix) bool { return prefix.Contains(ip) })
}

// translated returns the IPv4 address in an IPv6 address of NAT64.
func translated(ip netip.Addr) (netip.Addr, bool) {
	if !netip.MustParsePrefix("64:ff9b::/96").Contains(ip) {
		return netip.Addr{}, false
	}
	bytes := ip.As16()
	return netip.AddrFrom4([4]byte(bytes[12:])), true
}

// special returns networks that are not public although the standard library says so. Most are from
// IANA's special-purpose registries (RFC 6890 and its successors). Two are public numbers that
// clouds use inside every cluster: the Services of GKE, including the API server
// (cloud.google.com/kubernetes-engine/docs/concepts/alias-ips), and Azure's host agent, which
// returns the node's configuration
// (learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16).
func special() []netip.Prefix {
	var all []netip.Prefix
	for _, prefix := range []string{
		"34.118.224.0/20", "168.63.129.16/32",
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "240.0.0.0/4", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	} {
		all = append(all, netip.MustParsePrefix(prefix))
	}
	return all
}
