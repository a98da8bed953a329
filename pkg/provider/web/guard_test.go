// SPDX-License-Identifier: Apache-2.0

package web

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
	"github.com/plumbline-ci/plumbline/test/dns"
)

// Every spelling of a private address is refused, unless the policy allows it.
func TestGetRefusesPrivateAddresses(t *testing.T) {
	var called atomic.Int32
	s := serve(t, func(http.ResponseWriter, *http.Request) { called.Add(1) })
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	for _, host := range []string{
		"127.0.0.1", "127.1.2.3", "localhost", "LOCALHOST.", "x.localhost", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]",
		"[::ffff:7f00:1]",
		"[::127.0.0.1]", "[fe80::1%25lo]", "[fc00::1]", "[64:ff9b::7f00:1]", "[64:ff9b::10.0.0.1]", "[2002:7f00:1::]",
		"[ff02::1]", "[::ffff:0:127.0.0.1]",
		"2130706433", "0x7f000001", "0x7f.1", "127.1", "0177.0.0.1", "017700000001", "127.0.0.1.", "127.0.0.0x1", "１２７.0.0.1",
		"127。0。0。1", "ⓛocalhost",
		"10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "198.18.0.1", "224.0.0.1",
		"255.255.255.255", "0.1.2.3",
		"kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "x.svc.example.com", "metadata.google.internal",
		"printer.local",
	} {
		_, err := New(Options{Proxy: direct}).Get(t.Context(), "http://"+host+":"+port+"/", egress.Policy{}, 100)
		if f := fault.Of(err); f == nil || f.Class != fault.Invalid ||
			(f.Reason != "AddressRefused" && f.Reason != "BadAddress") {
			t.Errorf("%s: %+v, want AddressRefused", host, f)
		}
	}
	if got := called.Load(); got != 0 {
		t.Errorf("the server was called %d times", got)
	}
}

// A name is checked by the address that it has when the connection is made, whatever it resolved to
// before.
func TestGetRefusesNamesOfPrivateAddresses(t *testing.T) {
	var called atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if called.Add(1); r.URL.Path == "/first" {
			// The redirect makes the client resolve the same name again.
			http.Redirect(w, r, "/second", http.StatusFound)
		}
	})
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	const name = "http://rebound.example.com:"
	for _, address := range []string{"127.0.0.1", "10.96.0.1", "169.254.169.254"} {
		_, err := New(Options{Proxy: direct, Resolver: dns.Resolver(address)}).Get(t.Context(), name+port, egress.Policy{},
			100)
		if f := fault.Of(err); f == nil || f.Reason != "AddressRefused" ||
			!strings.Contains(f.Message, "resolves to "+address) {
			t.Errorf("%s: %+v, want AddressRefused", address, f)
		}
	}
	if called.Load() != 0 {
		t.Errorf("the server was called %d times", called.Load())
	}
	allowed := egress.Policy{Allowed: egress.Hosts{"127.0.0.1"}}
	if _, err := New(Options{Proxy: direct, Resolver: dns.Resolver("127.0.0.1")}).Get(t.Context(), name+port+"/x", allowed,
		100); err != nil || called.Load() != 1 {
		t.Errorf("an address that is allowed: %v", err)
	}
	_, err := New(Options{Proxy: direct, Resolver: dns.Resolver("127.0.0.1", "127.0.0.2")}).Get(t.Context(),
		name+port+"/first", allowed, 100)
	if f := fault.Of(err); f == nil || f.Reason != "AddressRefused" || called.Load() != 2 {
		t.Errorf("a name that was bound again: %+v after %d calls, want AddressRefused after the first", f, called.Load()-1)
	}
	for resolved, want := range map[string]bool{"[::1]": false, "[::ffff:10.0.0.1]": false, "[fe80::1%eth0]": false,
		"[fd00::1]": false, "93.184.215.14": true} {
		if err := (egress.Policy{}).Dial(resolved+":443", false); want != (err == nil) {
			t.Errorf("%s: %v", resolved, err)
		}
	}
}

func TestGetChecksEachRedirect(t *testing.T) {
	var called atomic.Int32
	inside := serve(t, func(http.ResponseWriter, *http.Request) { called.Add(1) })
	for _, to := range []string{
		strings.Replace(inside.URL, "127.0.0.1", "127.0.0.2", 1), "http://10.0.0.1/", "http://[::1]/",
		"http://x.default.svc/", "file:///etc/passwd", "ftp://example.com/x",
	} {
		outside := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		})
		_, err := New(Options{Proxy: direct}).Get(t.Context(), outside.URL, egress.Policy{Allowed: egress.Hosts{"127.0.0.1"}},
			100)
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("redirect to %s: %v, want Invalid", to, err)
		}
	}
	if called.Load() != 0 {
		t.Error("a redirect reached what is refused")
	}
}

func TestPolicyAllowsAndRefuses(t *testing.T) {
	s := serve(t, text("ok"))
	tests := map[string]struct {
		policy  egress.Policy
		allowed bool
	}{
		"nothing":             {egress.Policy{}, false},
		"the address":         {egress.Policy{Allowed: egress.Hosts{"127.0.0.1"}}, true},
		"its network":         {egress.Policy{Allowed: egress.Hosts{"127.0.0.0/8"}}, true},
		"its network in IPv6": {egress.Policy{Allowed: egress.Hosts{"::ffff:127.0.0.0/104"}}, true},
		"another address":     {egress.Policy{Allowed: egress.Hosts{"127.0.0.2", "10.0.0.0/8"}}, false},
		"refused beats allowed": {
			egress.Policy{Allowed: egress.Hosts{"127.0.0.1"}, Refused: egress.Hosts{"127.0.0.0/8"}}, false,
		},
		"what an operator configured": {egress.Policy{Trusted: egress.HostPort(s.URL + "/api/v1")}, true},
		"another port of it":          {egress.Policy{Trusted: "127.0.0.1:1"}, false},
		"refused beats configured": {
			egress.Policy{Trusted: egress.HostPort(s.URL), Refused: egress.Hosts{"127.0.0.1"}}, false,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(Options{Proxy: direct}).Get(t.Context(), s.URL, test.policy, 100)
			if test.allowed != (err == nil) || (err != nil && !fault.Is(err, fault.Invalid)) {
				t.Errorf("%v, want allowed %t", err, test.allowed)
			}
		})
	}
	local := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	for host, want := range map[string]bool{"localhost": true, "*.localhost": false, "127.0.0.0/8": false} {
		_, err := New(Options{Proxy: direct}).Get(t.Context(), local, egress.Policy{Allowed: egress.Hosts{host}}, 100)
		if want != (err == nil) {
			t.Errorf("localhost with %s allowed: %v", host, err)
		}
	}
}

// Through a proxy names are checked, and addresses are the proxy's concern; the proxy itself may be
// anywhere.
func TestProxy(t *testing.T) {
	var asked atomic.Value
	asked.Store("")
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.URL.String())
		_, _ = io.WriteString(w, "by proxy")
	})
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := New(Options{Proxy: func(*http.Request) (*url.URL, error) { return at, nil }})
	got, err := client.Get(t.Context(), "http://example.invalid/x", egress.Policy{}, 100)
	if err != nil || string(got) != "by proxy" || asked.Load() != "http://example.invalid/x" {
		t.Errorf("%q, %v, asked for %q", got, err, asked.Load())
	}
	asked.Store("")
	for _, host := range []string{"127.0.0.1", "[::1]", "localhost", "kubernetes", "x.default.svc", "2130706433",
		"10.0.0.1", "refused.example.com", "a.refused.example.com"} {
		policy := egress.Policy{Refused: egress.Hosts{"refused.example.com", "*.refused.example.com"}}
		if _, err := client.Get(t.Context(), "http://"+host+"/", policy, 100); !fault.Is(err, fault.Invalid) ||
			asked.Load() != "" {
			t.Errorf("%s: %v, the proxy was asked for %q", host, err, asked.Load())
		}
	}
	if _, err := client.Get(t.Context(), "http://git.corp.internal/",
		egress.Policy{Allowed: egress.Hosts{"*.corp.internal"}}, 100); err != nil {
		t.Errorf("a name that is allowed: %v", err)
	}
}

// The shown form of an address never names a user.
func FuzzShow(f *testing.F) {
	for _, address := range []string{"http://user:password@example.com/x", "http://example.com/@x?token=y",
		"http://[::1]:80/x", "x"} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		u, err := parseAddress(address)
		if err == nil && strings.Contains(Show(address), "@") && !strings.Contains(u.EscapedPath(), "@") {
			t.Errorf("%q shows a user", address)
		}
	})
}
