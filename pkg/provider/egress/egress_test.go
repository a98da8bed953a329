// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestPublic(t *testing.T) {
	for ip, want := range map[string]bool{
		"1.1.1.1": true, "93.184.215.14": true, "2606:4700:4700::1111": true, "64:ff9b::1.1.1.1": true, "2a00:1450::1": true,
		"172.15.255.255": true, "172.32.0.0": true, "100.63.255.255": true, "100.128.0.0": true,
		"64:ff9b:1::1": false, "2001:db8::1": false, "2001::1": false, "3fff::1": false, "100::1": false, "fec0::1": false,
		"203.0.113.9":  false,
		"34.118.224.1": false, "34.118.239.255": false, "34.118.240.0": true, "168.63.129.16": false,
		"::ffff:34.118.224.1": false, "64:ff9b::22.118.224.1": true, "64:ff9b::34.118.224.1": false,
		"240.0.0.1": false, "192.0.0.8": false, "ff0e::1": false,
	} {
		if got := public(netip.MustParseAddr(ip).Unmap()); got != want {
			t.Errorf("%s: %t", ip, got)
		}
	}
}

// A listed address is allowed in every form.
func TestHostsMatchAddressesBehindNAT64(t *testing.T) {
	policy := Policy{Allowed: Hosts{"10.0.0.0/8"}, Refused: Hosts{"1.1.1.0/24", "10.1.1.1"}}
	for address, want := range map[string]bool{
		"[64:ff9b::10.0.0.1]:443": true, "[64:ff9b::10.1.1.1]:443": false, "[64:ff9b::1.1.1.1]:443": false,
		"[64:ff9b::1.1.2.1]:443":     true,
		"[64:ff9b::192.168.0.1]:443": false, "10.1.1.1:443": false,
	} {
		if err := policy.Dial(address, false); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestParse(t *testing.T) {
	got, err := Parse(" Git.Example.com,, *.a-b.example , 10.0.0.0/8,::1, FD00::/8 ")
	if err != nil || strings.Join(got, " ") != "git.example.com *.a-b.example 10.0.0.0/8 ::1 fd00::/8" {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"https://x", "a b", "*", "x/24", "10.0.0.0/33", "*.", "a..b", "host:80", "1.2.3", "*x"} {
		if got, err := Parse(bad); err == nil {
			t.Errorf("%q became %v", bad, got)
		}
	}
}

// A host that is allowed by its name alone is never a literal address that is not public.
func FuzzPolicyName(f *testing.F) {
	for _, host := range []string{"example.com", "127.0.0.1", "[::1]", "0x7f.1", "2130706433", "a.svc", "[fe80::1%25lo]",
		"١٢٧.0.0.1", "", "%31"} {
		f.Add("http://" + host + ":80/x")
	}
	f.Fuzz(func(t *testing.T, address string) {
		u, err := url.Parse(address)
		if err != nil {
			return
		}
		allowed, err := Policy{}.Name(u, true)
		if allowed {
			t.Errorf("%q is allowed by no configuration", address)
		}
		if ip, parseErr := netip.ParseAddr(u.Hostname()); err == nil && parseErr == nil && !public(ip.WithZone("").Unmap()) {
			t.Errorf("%q is let through to a proxy", address)
		}
	})
}
