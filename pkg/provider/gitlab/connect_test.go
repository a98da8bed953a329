// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/test/forge"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

func TestBaseURL(t *testing.T) {
	app := v1alpha1.Project{Owner: "acme/team", Name: "app"}
	cases := []struct{ name, configured, repository, want string }{
		{"what is configured", "https://git.example.com/", "https://gitlab.com/acme/team/app", "https://git.example.com"},
		{"the API's address is as good", "https://git.example.com/sub/api/v4/", "", "https://git.example.com/sub"},
		{"the Repository's own host", "", "https://git.example.com:8443/acme/team/app", "https://git.example.com:8443"},
		{"and what is in front of the project", "", "https://git.example.com/sub/Acme/Team/app.git/",
			"https://git.example.com/sub"},
		{"however the project is written", "", "https://Git.example.com./sub/acme/team/app.GIT.git/",
			"https://git.example.com/sub"},
		{"gitlab.com", "", "https://gitlab.com/acme/team/app", "https://gitlab.com"},
		{"without a project", "", "https://git.example.com", "https://git.example.com"},
		{"a Repository without a URL", "", "", "https://gitlab.com"},
		{"a password goes nowhere", "", "https://a:b@git.example.com/acme/team/app", "https://git.example.com"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := BaseURL(c.configured, c.repository, app); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestConnectChecksProjectHost(t *testing.T) {
	ok := v1alpha1.Project{Owner: "acme/team", Name: "app", ID: 1, URL: "https://git.example.com/sub/acme/team/app"}
	connect := func(base string, change func(*v1alpha1.Project, *provider.Credentials)) error {
		project, credentials := ok, provider.Credentials{Token: " glpat-1\n"}
		change(&project, &credentials)
		_, err := New(Options{}).Connect(t.Context(), base, project, credentials)
		return err
	}
	if err := connect("https://git.example.com/sub", func(*v1alpha1.Project, *provider.Credentials) {}); err != nil {
		t.Errorf("refused: %v", err)
	}
	cases := []struct {
		name, base string
		change     func(*v1alpha1.Project, *provider.Credentials)
	}{
		{"nothing is configured and the project is not on gitlab.com", "", func(*v1alpha1.Project, *provider.Credentials) {}},
		{"no encryption", "http://git.example.com/sub", func(p *v1alpha1.Project, _ *provider.Credentials) {
			p.URL = strings.Replace(p.URL, "https", "http", 1)
		}},
		{"the project is not below GitLab's path", "https://git.example.com/other",
			func(*v1alpha1.Project, *provider.Credentials) {}},
		{"the page is another project's", "https://git.example.com/sub",
			func(p *v1alpha1.Project, _ *provider.Credentials) { p.Owner = "acme" }},
		{"a name with a slash", "https://git.example.com/sub",
			func(p *v1alpha1.Project, _ *provider.Credentials) { p.Owner, p.Name = "acme", "team/app" }},
		{"no id", "https://git.example.com/sub", func(p *v1alpha1.Project, _ *provider.Credentials) { p.ID = 0 }},
		{"a token with a line in it", "https://git.example.com/sub",
			func(_ *v1alpha1.Project, c *provider.Credentials) { c.Token = "a\nb" }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := connect(c.base, c.change); !fault.Is(err, fault.Operator) {
				t.Errorf("%v, want an Operator fault", err)
			}
		})
	}
}

func TestTokenStaysAtHost(t *testing.T) {
	var mu sync.Mutex
	var met []http.Header
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		met = append(met, r.Header)
	}))
	t.Cleanup(elsewhere.Close)
	b := newBench(t, forgelab.Options{})
	b.Inject(forgelab.Fault{Do: forge.Answer(http.StatusFound, http.Header{"Location": {elsewhere.URL}}, "")})
	if _, err := b.client.DefaultBranch(t.Context()); !fault.Is(err, fault.Operator) {
		t.Errorf("%v, want an Operator fault", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(met) != 0 {
		t.Errorf("the other host was called: %v", met)
	}
}

// L1, E17: no call waits in the worker, none is repeated, and none is made before the limit's
// reset.
func TestRateLimitStopsCalls(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	now := time.Now()
	b.Inject(forgelab.Fault{Count: 1, Do: forgelab.RateLimited(now, now.Add(10*time.Minute))})
	calls := b.Count("")
	for range 3 {
		_, err := b.client.DefaultBranch(t.Context())
		if f := fault.Of(err); f == nil || f.Class != fault.Throttled || f.RetryAfter < 9*time.Minute {
			t.Errorf("%+v, want a Throttled fault until the reset", f)
		}
	}
	if got := b.Count("") - calls; got != 1 {
		t.Errorf("%d calls were made", got)
	}
}

func TestLibraryDoesNotRetry(t *testing.T) {
	for _, how := range []forgelab.Action{forgelab.InternalError500(), forge.Drop(), forgelab.ReadOnly503(),
		forgelab.Conflict409()} {
		b := newBench(t, forgelab.Options{})
		b.Inject(forgelab.Fault{Do: how})
		calls := b.Count("")
		if _, err := b.client.DefaultBranch(t.Context()); !fault.Is(err, fault.Transient) {
			t.Errorf("%v, want a Transient fault", err)
		}
		if got := b.Count("") - calls; got != 1 {
			t.Errorf("%d calls were made", got)
		}
	}
}

func TestRefusedTokenNamesSecret(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	b.RevokeToken(b.token.Value)
	_, err := b.client.DefaultBranch(t.Context())
	if f := fault.Of(err); f == nil || f.Class != fault.Operator || f.Reason != fault.ReasonCredentialsRefused ||
		!strings.Contains(f.Message, "secret ci/app") || strings.Contains(f.Message, b.token.Value) {
		t.Errorf("%+v", f)
	}
}

func TestParseAddress(t *testing.T) {
	const public, below = "https://gitlab.com", "https://git.example.com:8443/sub"
	tests := map[string]struct {
		base, text string
		want       address
	}{
		"blob": {
			public, "https://gitlab.com/acme/app/-/blob/main/a/b.yaml", address{"acme/app", "main", "a/b.yaml"},
		},
		"another spelling of host": {
			public, "https://GitLab.com:443/acme/app/-/blob/main/b.yaml", address{"acme/app", "main", "b.yaml"},
		},
		"raw, of a subgroup": {
			public, "https://gitlab.com/acme/a/b/app/-/raw/v1.2/b.yaml", address{"acme/a/b/app", "v1.2", "b.yaml"},
		},
		"a branch with a slash": {
			public, "https://gitlab.com/acme/app/-/blob/a%2Fb/c%20d.yaml", address{"acme/app", "a/b", "c d.yaml"},
		},
		"a full ref": {
			public, "https://gitlab.com/acme/app/-/raw/refs/heads/main/b.yaml", address{"acme/app", "main", "b.yaml"},
		},
		"a query is no part of it": {
			public, "https://gitlab.com/acme/app/-/blob/main/b.yaml?ref_type=heads#L1", address{"acme/app", "main", "b.yaml"},
		},
		"below a path": {
			below, "https://git.example.com:8443/sub/acme/app/-/blob/main/b.yaml", address{"acme/app", "main", "b.yaml"},
		},
		"not below the path":   {below, "https://git.example.com:8443/acme/app/-/blob/main/b.yaml", address{}},
		"another host":         {public, "https://gitlab.com.evil.example/acme/app/-/blob/main/b.yaml", address{}},
		"another scheme":       {public, "http://gitlab.com/acme/app/-/blob/main/b.yaml", address{}},
		"a user":               {public, "https://x@gitlab.com/acme/app/-/blob/main/b.yaml", address{}},
		"a directory":          {public, "https://gitlab.com/acme/app/-/tree/main/b", address{}},
		"no path":              {public, "https://gitlab.com/acme/app/-/blob/main", address{}},
		"no project":           {public, "https://gitlab.com/-/blob/main/b.yaml", address{}},
		"no group":             {public, "https://gitlab.com/app/-/blob/main/b.yaml", address{}},
		"dots":                 {public, "https://gitlab.com/acme/app/-/blob/main/a/%2e%2e/b.yaml", address{}},
		"a group that is none": {public, "https://gitlab.com/ac%2Fme/app/-/blob/main/b.yaml", address{}},
		"an empty segment":     {public, "https://gitlab.com/acme/app/-/blob//b.yaml", address{}},
		"GitHub's form":        {public, "https://gitlab.com/acme/app/blob/main/b.yaml", address{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			base, err := url.Parse(test.base)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := parseAddress(base, test.text)
			if ok != (test.want != address{}) || (ok && got != test.want) {
				t.Errorf("%+v, %t, want %+v", got, ok, test.want)
			}
		})
	}
}
