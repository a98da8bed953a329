// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestServiceOf(t *testing.T) {
	repository := func(namespace string, p *GitProvider) *Repository {
		return &Repository{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r"}, Spec: RepositorySpec{GitProvider: p},
		}
	}
	global := repository("plumbline", &GitProvider{
		Type: "gitlab", URL: "https://git.example", Secret: &Secret{Name: "g"}, WebhookSecret: &Secret{Name: "gw", Key: "k"},
	})
	tests := map[string]struct {
		own    *GitProvider
		global *Repository
		want   Service
		says   string
	}{
		"no provider": {nil, global, Service{}, ""},
		"keys by default": {&GitProvider{Secret: &Secret{Name: "s"}, WebhookSecret: &Secret{Name: "w"}}, nil,
			Service{Token: SecretKey{"team", "s", "provider.token"}, Webhook: SecretKey{"team", "w", "webhook.secret"}}, ""},
		"keys by name": {
			&GitProvider{URL: "https://a", User: "u", Secret: &Secret{"s", "x"}, WebhookSecret: &Secret{"w", "y"}}, nil,
			Service{URL: "https://a", User: "u", Token: SecretKey{"team", "s", "x"}, Webhook: SecretKey{"team", "w", "y"}}, "",
		},
		"no secret at all": {&GitProvider{Type: "gitlab"}, nil, Service{}, ""},
		"both secrets and the URL of the global one": {&GitProvider{Type: "gitlab", WebhookSecret: &Secret{Name: "own"}},
			global,
			Service{URL: "https://git.example", Token: SecretKey{"plumbline", "g", "provider.token"},
				Webhook: SecretKey{"plumbline", "gw", "k"}}, ""},
		"the same endpoint, written otherwise": {&GitProvider{Type: "gitlab", URL: "https://GIT.example/api/v4/"}, global,
			Service{URL: "https://git.example", Token: SecretKey{"plumbline", "g", "provider.token"},
				Webhook: SecretKey{"plumbline", "gw", "k"}}, ""},
		"the same endpoint with its scheme's port": {&GitProvider{Type: "gitlab", URL: "https://git.example.:443"}, global,
			Service{URL: "https://git.example", Token: SecretKey{"plumbline", "g", "provider.token"},
				Webhook: SecretKey{"plumbline", "gw", "k"}}, ""},
		"another port is another endpoint": {&GitProvider{Type: "gitlab", URL: "https://git.example:80"}, global, Service{},
			"must not be sent where another namespace says"},
		"a token is not sent elsewhere": {&GitProvider{Type: "gitlab", URL: "https://evil.example"}, global, Service{},
			"must not be sent where another namespace says"},
		"its own secret goes where it says": {&GitProvider{
			Type: "gitlab", URL: "https://own.example", Secret: &Secret{Name: "s"},
		}, global,
			Service{
				URL: "https://own.example", Token: SecretKey{"team", "s", "provider.token"}, Webhook: SecretKey{"team", "gw", "k"},
			}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ServiceOf(repository("team", tt.own), tt.global)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if (err != nil) != (tt.says != "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %q", err, tt.says)
			}
		})
	}
}

// A Repository without git_provider.url uses the host of its own url. That must not send another
// namespace's token there.
func TestServiceOfUsesURLOfTokenOwner(t *testing.T) {
	repository := func(namespace, url string, p *GitProvider) *Repository {
		return &Repository{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r"}, Spec: RepositorySpec{URL: url, GitProvider: p},
		}
	}
	const own = "https://evil.example/a/b"
	global := repository("plumbline", "https://git.example/global", &GitProvider{Secret: &Secret{Name: "g"}})
	homeless := repository("plumbline", "", &GitProvider{Secret: &Secret{Name: "g"}})
	for name, tt := range map[string]struct {
		provider *GitProvider
		global   *Repository
		want     string
	}{
		"its own token":        {&GitProvider{Secret: &Secret{Name: "s"}}, global, own},
		"no global Repository": {&GitProvider{Secret: &Secret{Name: "s"}}, nil, own},
		"the global token":     {&GitProvider{}, global, "https://git.example/global"},
		"the global token, which is for no place by name": {&GitProvider{}, homeless, ""},
	} {
		got, err := ServiceOf(repository("team", own, tt.provider), tt.global)
		if err != nil || got.RepositoryURL != tt.want {
			t.Errorf("%s: %q, %v, want %q", name, got.RepositoryURL, err, tt.want)
		}
	}
}

// A Repository's condition is visible to its team, the password in the global Repository's URL is
// not.
func TestServiceOfRepeatsNoPassword(t *testing.T) {
	global := &Repository{
		Spec: RepositorySpec{GitProvider: &GitProvider{URL: "https://ci:hunter2@git.example", Secret: &Secret{Name: "g"}}},
	}
	own := &Repository{Spec: RepositorySpec{GitProvider: &GitProvider{URL: "https://me:swordfish@evil.example"}}}
	_, err := ServiceOf(own, global)
	if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "swordfish") ||
		!strings.Contains(err.Error(), "git.example") {
		t.Errorf("%v", err)
	}
}
