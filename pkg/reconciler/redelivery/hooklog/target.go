// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

const (
	// tokenEvery is the time between two steps with the same token. A step has two calls, and one
	// for each further webhook that leads here: 60 calls a minute. gitlab.com allows a user 2,000
	// a minute, and a self-managed GitLab that limits users 120 by default.
	tokenEvery = 2 * time.Second
	// hostEvery is the time between two steps at the same server: gitlab.com allows 2,000 calls a
	// minute from an address.
	hostEvery = 250 * time.Millisecond
	// namespaceEvery is the time between two steps of one namespace at the same server: a namespace
	// gets at most half of a server's steps.
	namespaceEvery = 2 * hostEvery
	// atOnce is how many steps may run at the same time at one server, and for one namespace. It is
	// less than the number of workers, so that a slow server does not delay other Repositories.
	atOnce = 2
)

// target is a Repository whose webhooks are read, and where they are.
type target struct {
	owner      types.NamespacedName
	repository *pacv1alpha1.Repository
	service    pacv1alpha1.Service
	base       string // the service's web URL
	project    v1alpha1.Project
	// leads is where our webhook leads.
	leads string
	// since is when the URL was claimed. Another installation may have recorded earlier events.
	since time.Time
}

// serves reports whether the Repository is of this Git service and has a URL.
func (s *source) serves(repository *pacv1alpha1.Repository) bool {
	own := repository.Spec.GitProvider
	return own != nil && own.Type == s.service.Name && repository.Spec.URL != "" && repository.DeletionTimestamp == nil
}

// target returns nil while there is nothing to read: the Repository does not hold the claim of its
// URL, or webhook-url is not set.
func (s *source) target(repository *pacv1alpha1.Repository) (*target, error) {
	leads := s.settings().WebhookURL
	canonical, err := v1alpha1.CanonicalURL(repository.Spec.URL)
	if err != nil || leads == "" {
		return nil, err
	}
	claim, err := s.claims.Get(v1alpha1.ClaimName(canonical))
	if err != nil || claim.Status.ReleasedAt != nil ||
		claim.Spec.Repository.Namespace != repository.Namespace || claim.Spec.Repository.Name != repository.Name {
		return nil, nil //nolint:nilerr // without a claim there is nothing to read
	}
	global, err := s.repositories.Repositories(s.namespace).Get(s.global)
	if err != nil {
		global = nil // there is none
	}
	service, err := pacv1alpha1.ServiceOf(repository, global)
	if err != nil {
		return nil, err
	}
	t := &target{
		owner:      types.NamespacedName{Namespace: repository.Namespace, Name: repository.Name},
		repository: repository,
		service:    service,
		leads:      leads,
		since:      claim.CreationTimestamp.Time,
	}
	t.base = s.service.BaseURL(service.URL, service.RepositoryURL, v1alpha1.Project{})
	t.project = provider.ProjectAt(t.base, canonical)
	if bound := claim.Status.Bound; bound != nil && bound.RepositoryUID == repository.UID {
		t.project.ID = bound.ID
	}
	return t, nil
}

// ours returns the webhooks that lead to the receivers: to their host, at or below their path.
func (t *target) ours(hooks []provider.Hook) (ours []provider.Hook) {
	here, err := url.Parse(t.leads)
	if err != nil {
		return nil
	}
	for _, hook := range hooks {
		there, err := url.Parse(hook.URL)
		if err == nil && strings.EqualFold(there.Scheme, here.Scheme) && provider.Host(there) == provider.Host(here) &&
			strings.HasPrefix(strings.TrimRight(there.Path, "/")+"/", strings.TrimRight(here.Path, "/")+"/") {
			ours = append(ours, hook)
		}
	}
	return ours
}

// limits returns the limits of a step, in the order in which it passes them.
func (t *target) limits() []limit {
	host := t.base
	if u, err := url.Parse(t.base); err == nil {
		host = strings.ToLower(u.Host)
	}
	return []limit{
		{name: "token " + t.service.Token.Namespace + "/" + t.service.Token.Name, every: tokenEvery},
		{name: "namespace " + t.owner.Namespace, every: namespaceEvery, atOnce: atOnce},
		{name: "host " + host, every: hostEvery, atOnce: atOnce},
	}
}
