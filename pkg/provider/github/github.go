// SPDX-License-Identifier: Apache-2.0

// Package github is the provider for GitHub and GitHub Enterprise Server, through a GitHub App or
// with the token that a Repository names. It is the only importer of go-github and ghinstallation.
package github

import (
	"context"
	"crypto/sha256"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/delivery"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
)

// Name is GitEventSpec.provider of the events this package decodes.
const Name = delivery.Name

// maxCached limits each of the in-memory caches. An evicted entry is created again.
const maxCached = 2000

// Options configure the provider. The zero value is right for production.
type Options struct {
	// UserAgent is sent with every call, as GitHub requires. Empty is "plumbline".
	UserAgent string
	// Limits are those of one call; zero fields are X1 of docs/errors.md.
	Limits provider.Limits
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// New returns the provider. It owns the caches of tokens and rate limits.
func New(o Options) provider.Provider {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.UserAgent == "" {
		o.UserAgent = "plumbline"
	}
	transport := provider.NewTransport(o.Limits)
	transport.Provider = Name
	s := &service{
		options:   o,
		transport: transport,
		paces:     recent.Map[paceKey, *provider.Pace]{Max: maxCached},
		minters:   recent.Map[minterKey, *minter]{Max: maxCached},
		limits:    recent.Map[limitKey, *limits.Mints]{Max: maxCached},
		logins:    recent.Map[loginKey, *login]{Max: maxCached},
		renewals:  recent.Map[paceKey, *renewals]{Max: maxCached},
		covered:   recent.Map[paceKey, *covered]{Max: maxCached},
	}
	return provider.Provider{
		Name:       Name,
		Webhook:    delivery.Webhook{},
		Connect:    s.connect,
		Locate:     s.locate,
		Deliveries: s.deliveries,
		Metadata:   metadata,
		SignsBody:  true,
		Annotates:  true,
		WithToken: &provider.Provider{
			Name:     Name,
			Webhook:  delivery.Webhook{},
			BaseURL:  BaseURL,
			Connect:  s.connectWithToken,
			Locate:   s.locateWithToken,
			Metadata: metadata,
			// GitHub signs the body.
			SignsBody: true,
			Comments:  true,
			Reopens:   true, // GitHub shows the newest status, whatever it says
		},
	}
}

type service struct {
	options   Options
	transport *provider.Transport
	paces     recent.Map[paceKey, *provider.Pace]
	minters   recent.Map[minterKey, *minter]
	limits    recent.Map[limitKey, *limits.Mints]
	logins    recent.Map[loginKey, *login]
	renewals  recent.Map[paceKey, *renewals]
	covered   recent.Map[paceKey, *covered]
	trees     provider.Trees
}

// paceKey identifies an installation at an API, which GitHub limits, or a user, for whom the token
// stands.
type paceKey struct {
	api          string
	installation int64
	token        [sha256.Size]byte
}

// limitKey identifies an App at an API, whose mints GitHub limits.
type limitKey struct {
	api string
	app int64
}

// minterKey identifies what a token covers. The digest makes a rotated key take effect at once
// (I4).
type minterKey struct {
	api                      string
	app, installation, scope int64
	key                      [sha256.Size]byte
}

// connect implements provider.Provider.Connect.
func (s *service) connect(
	_ context.Context, baseURL string, p v1alpha1.Project, c provider.Credentials,
) (provider.Client, error) {
	r, err := s.open(baseURL, p, c)
	if err != nil {
		return provider.Client{}, err
	}
	return provider.Client{
		History: r, Access: r, Source: r, Addresses: r, Tips: r, Tokens: r, Reporter: r, Conversation: r,
		Annotator: r,
	}, nil
}

// open returns one repository as the installation of the credentials sees it.
func (s *service) open(baseURL string, p v1alpha1.Project, c provider.Credentials) (*repository, error) {
	api, err := apiURL("github-url", baseURL, p)
	if err != nil {
		return nil, err
	}
	if err := checkCredentials(p, c); err != nil {
		return nil, err
	}
	// The installation's administrator configures where GitHub is, not a tenant, so it may be at
	// any address.
	reach := c.Reach
	reach.Trusted = egress.HostPort(api.String())
	base := s.transport.Within(reach)
	digest := sha256.Sum256(c.PrivateKey)
	reader := minterKey{api.String(), c.AppID, c.InstallationID, p.ID, digest}
	account := s.logins.GetOrCreate(loginKey{c.AppID, digest},
		func() *login { return newLogin(c.AppID, c.PrivateKey, s.options.Now) })
	installation := paceKey{api: api.String(), installation: c.InstallationID}
	renewed := s.renewals.GetOrCreate(installation, func() *renewals { return &renewals{} })
	tokens := s.minters.GetOrCreate(reader, func() *minter {
		return &minter{
			base:         base,
			api:          strings.TrimSuffix(api.String(), "/"),
			now:          s.options.Now,
			app:          c.AppID,
			installation: c.InstallationID,
			repository:   p.ID,
			owner:        p.Owner,
			name:         p.Name,
			login:        account,
			from:         c.From,
			renewals:     renewed,
		}
	})
	runs := &runTokens{
		minter: tokens, base: base,
		limit: s.limits.GetOrCreate(limitKey{api.String(), c.AppID}, func() *limits.Mints { return &limits.Mints{} }),
	}
	r := &repository{
		client: s.client(api, &authenticated{base: base, tokens: tokens, observe: c.Observe}, installation),
		runs:   runs, app: c.AppID,
		owner: p.Owner, name: p.Name, id: p.ID, web: baseURL, reader: reader, trees: &s.trees, caller: "the App",
		covered: s.covered.GetOrCreate(installation, func() *covered { return &covered{} }),
	}
	r.login = r.botLogin
	r.open = func(other v1alpha1.Project) (*repository, error) { return s.open(baseURL, other, c) }
	r.as = func(token provider.Token) *gh.Client {
		fixed := configured{value: token.Value, from: c.From}
		return s.client(api, &authenticated{base: base, tokens: fixed, observe: c.Observe}, installation)
	}
	return r, nil
}

// client returns a client that calls an API through a, within the limits of a credential.
func (s *service) client(api *url.URL, a *authenticated, limited paceKey) *gh.Client {
	a.host = api.Host
	a.pace = s.paces.GetOrCreate(limited, func() *provider.Pace {
		return provider.NewPace(s.options.Now, limits.Of(api.Host))
	})
	client := gh.NewClient(&http.Client{Transport: a, CheckRedirect: provider.CheckRedirect})
	client.BaseURL, client.UserAgent = api, s.options.UserAgent
	return client
}

// repository is one repository as one installation or one token sees it.
type repository struct {
	client      *gh.Client
	runs        *runTokens
	app         int64 // 0 with a token
	owner, name string
	id          int64
	caller      string // "the App"
	// login returns the name of the account that writes comments.
	login   func(ctx context.Context) (string, error)
	web     string // where the service shows its pages
	reader  minterKey
	trees   *provider.Trees
	covered *covered
	// open returns another repository of the installation, and as a client that calls with a token
	// of it. They and covered are nil for a repository that a token reads.
	open func(other v1alpha1.Project) (*repository, error)
	as   func(token provider.Token) *gh.Client
}

func (r *repository) fullName() string { return r.owner + "/" + r.name }

// CloneToken mints an installation token for one run, for this repository and the others.
func (r *repository) CloneToken(
	ctx context.Context, permissions map[string]string, others ...v1alpha1.Project,
) (provider.Token, error) {
	reach := []int64{r.id}
	for _, other := range others {
		reach = append(reach, other.ID)
	}
	token, err := r.runs.mint(ctx, permissions, reach)
	if err != nil && len(others) > 0 {
		r.covered.forget() // the installation may have lost one of them
	}
	return token, err
}

// RevokeToken revokes a run's token.
func (r *repository) RevokeToken(ctx context.Context, token string) error {
	return r.runs.revoke(ctx, token)
}

// apiURL returns the API's address from configuration alone, and refuses a project on another host:
// a payload must not decide where credentials are sent.
func apiURL(setting, baseURL string, p v1alpha1.Project) (*url.URL, error) {
	api, base, err := apiOf(setting, baseURL)
	if err != nil {
		return nil, err
	}
	project, err := url.Parse(p.URL)
	if err != nil || provider.Host(project) == "" || provider.Host(project) != provider.Host(base) {
		return nil, fault.Operatorf(reasonForeignHost,
			"repository %q is not on the configured GitHub %s: set %s, or remove the Repository", p.URL, base.Host, setting)
	}
	return api, nil
}

// APIOf returns the API's address of the GitHub of the App, and the GitHub's own.
func APIOf(baseURL string) (api, base *url.URL, err error) { return apiOf("github-url", baseURL) }

func apiOf(setting, baseURL string) (api, base *url.URL, err error) {
	if base, err = provider.BaseURL(setting, baseURL); err != nil {
		return nil, nil, err
	}
	if provider.Host(base) == "github.com" {
		return &url.URL{Scheme: "https", Host: "api.github.com", Path: "/"}, base, nil
	}
	return &url.URL{Scheme: base.Scheme, Host: base.Host, Path: "/api/v3/"}, base, nil
}

// loginPattern is GitHub's alphabet of logins, which become parts of API paths.
var loginPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*(\[bot\])?$`)

// checkProject refuses what is no repository. A token is never minted without the repository's id:
// it would cover the whole installation.
func checkProject(p v1alpha1.Project) error {
	if !delivery.ValidName(p.Owner, p.Name) || p.ID <= 0 {
		return notARepository(p)
	}
	return nil
}

func checkCredentials(p v1alpha1.Project, c provider.Credentials) error {
	if err := checkProject(p); err != nil {
		return err
	}
	switch {
	case c.AppID <= 0 || len(c.PrivateKey) == 0:
		return fault.Operatorf(fault.ReasonCredentialsMissing,
			"the GitHub App's credentials are missing: set github-application-id and github-private-key in the Secret")
	case c.InstallationID <= 0:
		return fault.Operatorf(reasonInstallationNotFound,
			"the delivery names no installation of the GitHub App: install the App on %s", p.Owner)
	}
	return nil
}
