// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"crypto/sha256"
	"net/http"
	"net/url"
	"strings"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/delivery"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/hooks"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
)

// publicURL is the default host of repositories.
const publicURL = "https://github.com"

// BaseURL implements provider.Provider.BaseURL: the Repository's git_provider.url, with or without
// the scheme, the API's host or its path; else the host of its own URL; else github.com. The
// payload is not used.
func BaseURL(configured, repositoryURL string, _ v1alpha1.Project) string {
	if configured = strings.TrimRight(strings.TrimSpace(configured), "/"); configured != "" {
		if !strings.Contains(configured, "://") { // as Pipelines-as-Code does
			configured = "https://" + configured
		}
		configured = strings.TrimSuffix(configured, "/api/v3")
		if configured == "https://api.github.com" {
			return publicURL
		}
		return configured
	}
	u, err := url.Parse(repositoryURL)
	if err != nil || provider.Host(u) == "" {
		return publicURL
	}
	return (&url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host)}).String()
}

// connectWithToken implements provider.Provider.Connect for a Repository that names a token. The
// token is sent only where configuration says, and only to addresses that a tenant may name.
func (s *service) connectWithToken(
	_ context.Context, baseURL string, p v1alpha1.Project, c provider.Credentials,
) (provider.Client, error) {
	if err := checkProject(p); err != nil {
		return provider.Client{}, err
	}
	own, err := s.readWithToken(baseURL, p, c)
	if err != nil {
		return provider.Client{}, err
	}
	r := own.repository
	return provider.Client{
		History: r, Access: r, Source: r, Addresses: own, Tips: r, Tokens: own, Reporter: own, Conversation: r,
	}, nil
}

// locateWithToken implements provider.Provider.Locate for a Repository that names a token.
func (s *service) locateWithToken(
	ctx context.Context, baseURL string, p v1alpha1.Project, c provider.Credentials,
) (v1alpha1.Located, error) {
	if !delivery.ValidName(p.Owner, p.Name) {
		return v1alpha1.Located{}, notARepository(p)
	}
	own, err := s.readWithToken(baseURL, p, c)
	if err != nil {
		return v1alpha1.Located{}, err
	}
	got, err := own.describe(ctx)
	if err != nil {
		return v1alpha1.Located{}, err
	}
	project, err := projectOf(p, []*gh.Repository{got})
	return v1alpha1.Located{Project: project}, err
}

// Webhooks returns the webhooks of a repository, for commands that set them up.
func Webhooks(baseURL string, p v1alpha1.Project, c provider.Credentials, userAgent string) (*hooks.Hooks, error) {
	if !delivery.ValidName(p.Owner, p.Name) {
		return nil, notARepository(p)
	}
	s := &service{
		options:   Options{Now: time.Now, UserAgent: userAgent},
		transport: provider.NewTransport(provider.Limits{}),
	}
	own, err := s.readWithToken(baseURL, p, c)
	if err != nil {
		return nil, err
	}
	return hooks.Of(own.client, p.Owner, p.Name), nil
}

// readWithToken returns the project as the token sees it.
func (s *service) readWithToken(baseURL string, p v1alpha1.Project, c provider.Credentials) (*withToken, error) {
	api, err := apiURL("git_provider.url", baseURL, p)
	if err != nil {
		return nil, err
	}
	token, err := provider.TokenOf(c, "GitHub", "personal")
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256([]byte(token))
	user := paceKey{api: api.String(), token: digest}
	r := &repository{
		client: s.client(api, &authenticated{
			base: s.transport.Within(c.Reach), tokens: configured{token, c.From}, observe: c.Observe, expires: c.Expires,
		}, user),
		owner: p.Owner, name: p.Name, id: p.ID, web: baseURL, trees: &s.trees, caller: "the token",
		reader: minterKey{api: api.String(), scope: p.ID, key: digest},
	}
	r.login = r.userLogin
	return &withToken{repository: r, token: provider.Token{User: c.User, Value: token}, shared: c.Shared}, nil
}

// withToken is a repository as the token sees it that its Repository names.
type withToken struct {
	*repository
	token  provider.Token
	shared bool // other tenants use the token too
}

// CloneToken returns the configured token itself, because GitHub derives no narrower one from it.
// So the user who configures it decides what the pods of a run may do.
func (w *withToken) CloneToken(context.Context, map[string]string, ...v1alpha1.Project) (provider.Token, error) {
	return w.token, nil
}

// Covered returns nothing: there is no App.
func (w *withToken) Covered(context.Context) ([]v1alpha1.Project, error) { return nil, nil }

// RevokeToken does nothing: the configured token is still needed.
func (w *withToken) RevokeToken(context.Context, string) error { return nil }

// FileAt reads the file with the token. The user who configured it for the Repository has decided
// what it covers. A token that other tenants use too reads only the event's own repository.
func (w *withToken) FileAt(ctx context.Context, text string, _ ...v1alpha1.Project) ([]byte, error) {
	if at, ok := parseAddress(w.web, text); ok && w.shared &&
		!strings.EqualFold(at.owner+"/"+at.name, w.fullName()) {
		return nil, fault.Ignoredf(reasonNotCovered,
			"%s/%s is not the event's repository, and the token is the global Repository's: nothing else is read with it",
			at.owner, at.name)
	}
	return w.repository.FileAt(ctx, text)
}

// userLogin returns the name of the token's user. It is read each time, because an account may be
// renamed.
func (r *repository) userLogin(ctx context.Context) (string, error) {
	const what = "asking for the name of the token's user"
	user, _, err := r.client.Users.Get(ctx, "")
	switch {
	case err != nil:
		return "", limits.Failed(what, err)
	case user.GetLogin() == "":
		return "", noAnswer(what)
	}
	return user.GetLogin(), nil
}

// configured is a token that a Repository names. It implements tokens.
type configured struct{ value, from string }

func (t configured) token(context.Context, time.Duration) (provider.Token, error) {
	return provider.Token{Value: t.value}, nil
}

func (t configured) forget(string) bool { return false }

func (t configured) renew(context.Context, string) bool { return false }

func (t configured) recordHelp() {}

func (t configured) remedy() string {
	return "GitHub refuses the token in " + t.from + ": it expired or was revoked; put a new one there"
}

// expiryOf returns when the token of an answered call expires, zero if GitHub does not say. GitHub
// writes the time zone as a name or as an offset.
func expiryOf(h http.Header) time.Time {
	for _, layout := range []string{"2006-01-02 15:04:05 MST", "2006-01-02 15:04:05 -0700"} {
		if at, err := time.Parse(layout, h.Get("GitHub-Authentication-Token-Expiration")); err == nil {
			return at
		}
	}
	return time.Time{}
}
