// SPDX-License-Identifier: Apache-2.0

// Package gitlab is the provider for gitlab.com and self-managed GitLab, through the token of a
// user or a bot. It is the only importer of go-gitlab.
package gitlab

import (
	"cmp"
	"context"
	"crypto/sha256"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/api"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/delivery"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/hooks"
)

// Name is GitEventSpec.provider of GitLab's events.
const Name = delivery.Name

// publicURL is where projects are unless something else is configured.
const publicURL = "https://gitlab.com"

// maxCached bounds what is stored of rate limits in memory; what is evicted is learnt again.
const maxCached = 2000

// Options tune the provider. The zero value is right for production.
type Options struct {
	// UserAgent is sent with every call. Empty is "plumbline".
	UserAgent string
	// Limits are those of one call; zero fields are X1 of docs/errors.md.
	Limits provider.Limits
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// New returns the provider. What it learns of rate limits lives as long as the value does.
func New(o Options) provider.Provider {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.UserAgent = cmp.Or(o.UserAgent, "plumbline")
	transport := provider.NewTransport(o.Limits)
	transport.Provider = Name
	s := &service{options: o, transport: transport, paces: recent.Map[paceKey, *provider.Pace]{Max: maxCached}}
	return provider.Provider{
		Name:     Name,
		Webhook:  delivery.Webhook{},
		BaseURL:  BaseURL,
		Connect:  s.connect,
		Hooks:    s.hooks,
		Metadata: metadata,
		Reopens:  true,
	} // a status that lands after one that has ended is another, newer one
}

// BaseURL is the web URL for Connect: what the Repository configures as git_provider.url, with or
// without the API's path; else what its own url has in front of the project; else gitlab.com. Both
// are settings of the Repository. A payload has no part in it.
func BaseURL(configured, repositoryURL string, p v1alpha1.Project) string {
	if configured = strings.TrimRight(strings.TrimSpace(configured), "/"); configured != "" {
		return strings.TrimSuffix(configured, "/api/v4")
	}
	u, err := url.Parse(repositoryURL)
	if err != nil || provider.Host(u) == "" {
		return publicURL
	}
	base := url.URL{Scheme: u.Scheme, Host: host(u)}
	project, own := "/"+p.Owner+"/"+p.Name, strings.TrimRight(u.Path, "/")
	for strings.HasSuffix(strings.ToLower(own), ".git") {
		own = own[:len(own)-len(".git")]
	}
	if cut := len(own) - len(project); cut >= 0 && strings.EqualFold(own[cut:], project) {
		base.Path = own[:cut]
	}
	return base.String()
}

// host is a URL's host with its port, without the dot of the root.
func host(u *url.URL) string {
	name, port, found := strings.Cut(strings.ToLower(u.Host), ".:")
	if found {
		return name + ":" + port
	}
	return strings.TrimSuffix(name, ".")
}

type service struct {
	options   Options
	transport *provider.Transport
	paces     recent.Map[paceKey, *provider.Pace]
	trees     provider.Trees
}

// paceKey is what GitLab limits: a user at an API. The token stands for its user.
type paceKey struct {
	api   string
	token [sha256.Size]byte
}

// connect returns a client for the project; it makes no call.
func (s *service) connect(
	_ context.Context,
	baseURL string,
	p v1alpha1.Project,
	c provider.Credentials,
) (provider.Client, error) {
	base, err := baseOf(baseURL, p)
	if err != nil {
		return provider.Client{}, err
	}
	if p.ID <= 0 {
		return provider.Client{}, notAProject(p)
	}
	client, user, err := s.client(base, c)
	if err != nil {
		return provider.Client{}, err
	}
	token := strings.TrimSpace(c.Token)
	r := &repository{
		Project: api.Project{Client: client, Path: p.Owner + "/" + p.Name, ID: p.ID},
		token:   provider.Token{User: c.User, Value: token},
		shared:  c.Shared,
		base:    base,
		now:     s.options.Now,
		reader:  readerKey{user, p.ID},
		trees:   &s.trees,
	}
	return provider.Client{
		Source:       r,
		History:      r,
		Tips:         r,
		Addresses:    r,
		Access:       r,
		Reporter:     r,
		Conversation: r,
		Tokens:       r,
	}, nil
}

// hooks returns the webhooks of a project; it makes no call.
func (s *service) hooks(baseURL string, p v1alpha1.Project, c provider.Credentials) (provider.HookLog, error) {
	base, err := baseOf(baseURL, p)
	if err != nil {
		return nil, err
	}
	client, _, err := s.client(base, c)
	if err != nil {
		return nil, err
	}
	return hooks.Of(client, p.Owner+"/"+p.Name), nil
}

// client calls the API of a GitLab with a token.
func (s *service) client(base *url.URL, c provider.Credentials) (*gl.Client, paceKey, error) {
	token := strings.TrimSpace(c.Token)
	if err := checkToken(token, c.From); err != nil {
		return nil, paceKey{}, err
	}
	at := base.JoinPath("api/v4/")
	user := paceKey{at.String(), sha256.Sum256([]byte(token))}
	pace := s.paces.GetOrCreate(user, func() *provider.Pace {
		return provider.NewPace(s.options.Now, provider.Rules{}) // gitlab.com says in its answers what is left
	})
	client, err := api.New(
		at,
		s.transport.Within(c.Reach),
		api.Login{Token: token, From: c.From, Pace: pace, Observe: c.Observe},
	)
	if err != nil {
		return nil, paceKey{}, fault.Operatorf(
			"BadConfiguration",
			"git_provider.url %q is not a URL: set it to https://<host>",
			base,
		)
	}
	client.UserAgent = s.options.UserAgent
	return client, user, nil
}

// repository is one project seen with one token. It is called by its path, which the payload's URL
// was checked against, never by the payload's id: that could be any project's which the token
// reaches.
type repository struct {
	api.Project
	token  provider.Token
	shared bool     // other tenants use the token as well
	base   *url.URL // where the service shows its pages
	now    func() time.Time
	reader readerKey
	trees  *provider.Trees
}

// readerKey is who reads a project.
type readerKey struct {
	user    paceKey
	project int64
}

// CloneToken returns the configured token itself: GitLab has no way to derive a narrower one from
// it. Whoever configures it chooses what the pods of a run may do; a project access token with
// read_repository and api reaches least. When it expires is theirs to know as well.
func (r *repository) CloneToken(context.Context, map[string]string) (provider.Token, error) {
	return r.token, nil
}

// RevokeToken does nothing: no token is a run's own, and the configured one is needed further.
func (r *repository) RevokeToken(context.Context, string) error { return nil }

// baseOf reads where GitLab is from configuration alone, and refuses a project that lives
// elsewhere: a payload must not choose where credentials are sent.
func baseOf(baseURL string, p v1alpha1.Project) (*url.URL, error) {
	base, err := provider.BaseURL("git_provider.url", cmp.Or(baseURL, publicURL))
	if err != nil {
		return nil, err
	}
	project, err := url.Parse(p.URL)
	if err != nil || provider.Host(project) == "" || provider.Host(project) != provider.Host(base) {
		return nil, fault.Operatorf("ForeignHost",
			"project %q is not on the configured GitLab %s: set git_provider.url, or remove the Repository", p.URL, base.Host)
	}
	switch {
	case !delivery.ValidPath(p.Owner + "/" + p.Name), strings.Contains(p.Name, "/"):
		return nil, notAProject(p)
	case !strings.EqualFold(joined(provider.Segments(base, project)), p.Owner+"/"+p.Name):
		return nil, fault.Operatorf("BadRepository", "%q is not the page of GitLab's project %s/%s", p.URL, p.Owner, p.Name)
	}
	return base, nil
}

func notAProject(p v1alpha1.Project) error {
	return fault.Operatorf("BadRepository", "%q is not a GitLab project", p.Owner+"/"+p.Name)
}

var headerValue = regexp.MustCompile(`^[!-~]+$`)

func checkToken(token, from string) error {
	switch {
	case token == "":
		return fault.Operatorf(
			fault.ReasonCredentialsMissing,
			"the GitLab token is missing: set git_provider.secret to a Secret that holds a project, group or personal access token",
		)
	case !headerValue.MatchString(token):
		return fault.Operatorf(
			fault.ReasonCredentialsInvalid,
			"the GitLab token in %s holds spaces or other characters that no token has: set it anew",
			from,
		)
	}
	return nil
}

// joined is the path that segments make; none if one of them holds a slash of its own.
func joined(segments []string) string {
	if slices.ContainsFunc(segments, func(s string) bool { return strings.Contains(s, "/") }) {
		return ""
	}
	return strings.Join(segments, "/")
}
