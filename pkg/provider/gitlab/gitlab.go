// SPDX-License-Identifier: Apache-2.0

// Package gitlab is the provider for gitlab.com and self-managed GitLab, through the token of a
// user or a bot. It is the only importer of go-gitlab.
package gitlab

import (
	"cmp"
	"context"
	"crypto/sha256"
	"net/url"
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

// publicURL is the default host of projects.
const publicURL = "https://gitlab.com"

// maxCached limits the in-memory cache of rate limits. An evicted entry is learnt again.
const maxCached = 2000

// Options configure the provider. The zero value is right for production.
type Options struct {
	// UserAgent is sent with every call. Empty is "plumbline".
	UserAgent string
	// Limits are those of one call; zero fields are X1 of docs/errors.md.
	Limits provider.Limits
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// New returns the provider. It owns the cache of rate limits.
func New(o Options) provider.Provider {
	s := newService(o)
	return provider.Provider{
		Name:     Name,
		Webhook:  delivery.Webhook{},
		BaseURL:  BaseURL,
		Connect:  s.connect,
		Locate:   s.locate,
		Hooks:    s.hooks,
		Metadata: metadata,
		Reopens:  true, // a status that arrives after a finished one is another, newer status
	}
}

// Webhooks returns the webhooks of a project, for a command of a user who has a token. It makes no
// call.
func Webhooks(baseURL string, p v1alpha1.Project, c provider.Credentials, userAgent string) (*hooks.Log, error) {
	return newService(Options{UserAgent: userAgent}).webhooks(baseURL, p, c)
}

func newService(o Options) *service {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.UserAgent = cmp.Or(o.UserAgent, "plumbline")
	transport := provider.NewTransport(o.Limits)
	transport.Provider = Name
	return &service{options: o, transport: transport, paces: recent.Map[paceKey, *provider.Pace]{Max: maxCached}}
}

type service struct {
	options   Options
	transport *provider.Transport
	paces     recent.Map[paceKey, *provider.Pace]
	trees     provider.Trees
}

// paceKey identifies a user at an API, which GitLab limits. The token stands for its user.
type paceKey struct {
	api   string
	token [sha256.Size]byte
}

// connect implements provider.Provider.Connect.
func (s *service) connect(
	_ context.Context, baseURL string, p v1alpha1.Project, c provider.Credentials,
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
		quiet:   c.Quiet,
		base:    base,
		now:     s.options.Now,
		reader:  readerKey{user, p.ID},
		trees:   &s.trees,
	}
	return provider.Client{
		History: r, Access: r, Source: r, Addresses: r, Tips: r, Tokens: r, Reporter: r, Conversation: r,
	}, nil
}

// locate implements provider.Provider.Locate.
func (s *service) locate(
	ctx context.Context, baseURL string, p v1alpha1.Project, c provider.Credentials,
) (v1alpha1.Located, error) {
	base, err := baseOf(baseURL, p)
	if err != nil {
		return v1alpha1.Located{}, err
	}
	client, _, err := s.client(base, c)
	if err != nil {
		return v1alpha1.Located{}, err
	}
	r := &repository{Project: api.Project{Client: client, Path: p.Owner + "/" + p.Name}}
	project, err := r.describeOwned(ctx)
	if err != nil {
		return v1alpha1.Located{}, err
	}
	if !strings.EqualFold(project.PathWithNamespace, r.Path) {
		return v1alpha1.Located{}, fault.Operatorf(reasonRepositoryReplaced,
			"%s was moved to %s: set spec.url of the Repository to its new URL", r.Path, project.PathWithNamespace)
	}
	event := &v1alpha1.GitEventSpec{Project: p}
	r.setProject(event, project)
	return v1alpha1.Located{Project: event.Project}, nil
}

// hooks implements provider.Provider.Hooks.
func (s *service) hooks(baseURL string, p v1alpha1.Project, c provider.Credentials) (provider.HookLog, error) {
	log, err := s.webhooks(baseURL, p, c)
	if err != nil {
		return nil, err
	}
	return log, nil
}

func (s *service) webhooks(baseURL string, p v1alpha1.Project, c provider.Credentials) (*hooks.Log, error) {
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

// client returns a client for the API of a GitLab with a token.
func (s *service) client(base *url.URL, c provider.Credentials) (*gl.Client, paceKey, error) {
	token, err := provider.TokenOf(c, "GitLab", "project, group or personal")
	if err != nil {
		return nil, paceKey{}, err
	}
	at := base.JoinPath("api/v4/")
	user := paceKey{at.String(), sha256.Sum256([]byte(token))}
	pace := s.paces.GetOrCreate(user, func() *provider.Pace {
		return provider.NewPace(s.options.Now, provider.Rules{}) // gitlab.com's answers contain what is left
	})
	client, err := api.New(at, s.transport.Within(c.Reach),
		api.Login{Token: token, From: c.From, Pace: pace, Observe: c.Observe})
	if err != nil {
		return nil, paceKey{}, fault.Operatorf(reasonBadConfiguration,
			"git_provider.url %q is not a URL: set it to https://<host>", base)
	}
	client.UserAgent = s.options.UserAgent
	return client, user, nil
}

// repository is one project as one token sees it. It is called by its path, against which the
// payload's URL was checked. The payload's id is never used, because it could be that of any
// project that the token covers.
type repository struct {
	api.Project
	token  provider.Token
	shared bool     // other tenants use the token too
	quiet  bool     // no note about a result is written
	base   *url.URL // where the service shows its pages
	now    func() time.Time
	reader readerKey
	trees  *provider.Trees
}

// readerKey identifies who reads a project.
type readerKey struct {
	user    paceKey
	project int64
}

// CloneToken returns the configured token itself, because GitLab cannot derive a narrower one. So
// the user who configures it decides what the pods of a run may do. A project access token with
// read_repository and api covers least. GitLab does not say here when it expires.
func (r *repository) CloneToken(context.Context, map[string]string, ...v1alpha1.Project) (provider.Token, error) {
	return r.token, nil
}

// Covered returns nothing: GitLab has no Apps.
func (r *repository) Covered(context.Context) ([]v1alpha1.Project, error) { return nil, nil }

// RevokeToken does nothing: the configured token is still needed.
func (r *repository) RevokeToken(context.Context, string) error { return nil }
