// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
	"github.com/plumbline-ci/plumbline/test/dns"
)

// local lets tests reach the servers they start.
func local() egress.Policy { return egress.Policy{Allowed: egress.Hosts{"127.0.0.1"}} }

// inside is a server of the installation's private network, which answers every caller.
func inside(t *testing.T) (port string, called *atomic.Int32) {
	t.Helper()
	called = &atomic.Int32{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		called.Add(1)
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"message":"s3cret of the inside"}`))
	}))
	t.Cleanup(srv.Close)
	_, port, err := net.SplitHostPort(srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port, called
}

// S30: a private address is called only if it is listed, in every spelling, and the refusal says
// what to set.
func TestGuardRefusesInternalGitService(t *testing.T) {
	port, called := inside(t)
	tr := NewTransport(Limits{})
	get := func(host string, policy egress.Policy) *fault.Error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+"/api/v4/projects", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tr.Within(policy).RoundTrip(req)
		return fault.Of(err)
	}
	for _, host := range []string{
		"127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port, "2130706433:" + port, "127.1:" + port, "0.0.0.0:" + port,
		"10.0.0.1", "192.168.1.1", "169.254.169.254", "[fd00::1]", "kubernetes.default.svc",
		"gitlab.gitlab.svc.cluster.local", "metadata.google.internal",
	} {
		f := get(host, egress.Policy{})
		if f == nil || f.Class != fault.Operator || f.Reason != ReasonAddressRefused ||
			!strings.Contains(f.Message, "git-allowed-hosts") {
			t.Errorf("%s: %+v, want an Operator fault that names git-allowed-hosts", host, f)
		}
	}
	if got := called.Load(); got != 0 {
		t.Errorf("the server inside was called %d times", got)
	}
	for sentence, policy := range map[string]egress.Policy{
		"listed": local(), "listed as a network": {Allowed: egress.Hosts{"127.0.0.0/8"}},
		"the administrator's": {Trusted: "127.0.0.1:" + port},
	} {
		if f := get("127.0.0.1:"+port, policy); f == nil || f.Reason == ReasonAddressRefused {
			t.Errorf("%s: %+v, want its answer", sentence, f)
		}
	}
	before := called.Load()
	// A connection that another policy allowed is not reused.
	if f := get("127.0.0.1:"+port, egress.Policy{Trusted: "127.0.0.1:1"}); f == nil || f.Reason != ReasonAddressRefused ||
		called.Load() != before {
		t.Errorf("after it was taken from the list: %+v, %d calls", f, called.Load()-before)
	}
}

// Tenants and users of the global Repository alternate: neither's calls close the connections of
// the others.
func TestGuardSeparatesConnectionsByPolicy(t *testing.T) {
	var made atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	tr := NewTransport(Limits{})
	for i := range 10 {
		policy := egress.Policy{Allowed: egress.Hosts{"127.0.0.1"}, Trusted: []string{"", "git.example:443"}[i%2]}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tr.Within(policy).RoundTrip(req); err != nil {
			t.Fatal(err)
		}
	}
	if got := made.Load(); got != 2 {
		t.Errorf("%d connections were made, want one for each policy", got)
	}
	for i := range 3 * maxPolicies {
		tr.direct(egress.Policy{Trusted: fmt.Sprint(i)})
	}
	kept := 0
	tr.guarded.DeleteFunc(func(string) bool { kept++; return false })
	if kept != maxPolicies {
		t.Errorf("%d policies are kept, want %d", kept, maxPolicies)
	}
}

// A name is checked by the address that it has when the connection is made: its owner may change
// that at any time.
func TestGuardRefusesReboundName(t *testing.T) {
	port, called := inside(t)
	tr := NewTransport(Limits{})
	tr.resolver = dns.Resolver("127.0.0.1")
	_, err := do(t, tr, "GET", "http://git.example.com:"+port)
	if f := fault.Of(err); called.Load() != 1 || f == nil || f.Reason == ReasonAddressRefused {
		t.Fatalf("a name that resolves to what is listed: %+v", f)
	}
	tr = NewTransport(Limits{})
	tr.resolver = dns.Resolver("127.0.0.2")
	_, err = do(t, tr, "GET", "http://git.example.com:"+port)
	f := fault.Of(err)
	if f == nil || f.Class != fault.Operator || f.Reason != ReasonAddressRefused || called.Load() != 1 {
		t.Errorf("%+v after %d calls, want AddressRefused", f, called.Load()-1)
	}
	if f != nil && (strings.Contains(f.Message, "127.0.0.2") || !strings.Contains(f.Message, "git.example.com")) {
		t.Errorf("%q tells what a name inside resolves to, or does not name it", f.Message)
	}
}

// A redirect is checked like the first address.
func TestGuardChecksRedirects(t *testing.T) {
	port, called := inside(t)
	outside := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.2:"+port+"/x", http.StatusTemporaryRedirect)
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, outside, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: NewTransport(Limits{}).Within(local()), CheckRedirect: CheckRedirect}
	_, err = client.Do(req)
	if f := fault.Of(err); f == nil || f.Reason != ReasonAddressRefused || called.Load() != 0 {
		t.Errorf("%+v after %d calls, want AddressRefused", f, called.Load())
	}
}
