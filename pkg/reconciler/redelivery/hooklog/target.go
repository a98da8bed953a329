// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"net/url"
	"path"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

const (
	// tokenEvery is the time between two steps with the same token, of two calls each, and one for
	// each further webhook that leads here: 60 calls a minute. gitlab.com allows a user 2,000
	// a minute, and a self-managed GitLab that limits users 120 unless told otherwise.
	tokenEvery = 2 * time.Second
	// hostEvery is the time between two steps at the same server: gitlab.com allows 2,000 calls a
	// minute from an address.
	hostEvery = 250 * time.Millisecond
	// namespaceEvery is the same for one namespace: half of what a server's turns are, so that the
	// others have the rest.
	namespaceEvery = 2 * hostEvery
	// atOnce is how many steps there may be at the same time at one server, and for one namespace:
	// fewer than workers, so that nobody's slow server holds up the others.
	atOnce = 2
)

// target is whose webhook is looked at, and where.
type target struct {
	owner      types.NamespacedName
	repository *pacv1alpha1.Repository
	service    pacv1alpha1.Service
	base       string // the service's web URL
	project    v1alpha1.Project
	// leads is where our webhook leads.
	leads string
	// since is when the URL was claimed. What happened before may be recorded by another
	// installation.
	since time.Time
}

// serves reports whether the Repository is of the Git service that is looked at, and its address
// here is known.
func (r *Reconciler) serves(repository *pacv1alpha1.Repository) bool {
	own := repository.Spec.GitProvider
	return own != nil && own.Type == r.service.Name && repository.Spec.URL != "" && repository.DeletionTimestamp == nil
}

// target returns nil while there is nothing to look at: the URL is another Repository's or not
// claimed yet, or webhook-url is not set.
func (r *Reconciler) target(repository *pacv1alpha1.Repository) (*target, error) {
	leads := r.settings().WebhookURL
	canonical, err := v1alpha1.CanonicalURL(repository.Spec.URL)
	if err != nil || leads == "" {
		return nil, err
	}
	claim := r.cached.claim(v1alpha1.ClaimName(canonical))
	if claim == nil || claim.Status.ReleasedAt != nil ||
		claim.Spec.Repository.Namespace != repository.Namespace || claim.Spec.Repository.Name != repository.Name {
		return nil, nil
	}
	service, err := pacv1alpha1.ServiceOf(
		repository,
		r.cached.repository(types.NamespacedName{Namespace: r.namespace, Name: r.global}),
	)
	if err != nil {
		return nil, err
	}
	t := &target{
		owner: types.NamespacedName{
			Namespace: repository.Namespace,
			Name:      repository.Name,
		},
		repository: repository,
		service:    service,
		leads:      leads,
		since:      claim.CreationTimestamp.Time,
	}
	t.base = r.service.BaseURL(service.URL, service.RepositoryURL, v1alpha1.Project{})
	t.project = projectAt(t.base, canonical)
	if bound := claim.Status.Bound; bound != nil && bound.RepositoryUID == repository.UID {
		t.project.ID = bound.ID
	}
	return t, nil
}

// projectAt reads the project's path off its URL. Without git_provider.url a server is taken to be
// at the root of its host.
func projectAt(base, canonical string) v1alpha1.Project {
	project := v1alpha1.Project{URL: canonical}
	at, err := url.Parse(base)
	page, err2 := url.Parse(canonical)
	if err != nil || err2 != nil {
		return project // which the service refuses
	}
	own := strings.Trim(page.Path, "/")
	if below := strings.Trim(
		at.Path,
		"/",
	); below != "" && len(own) > len(below) &&
		strings.EqualFold(own[:len(below)+1], below+"/") {
		own = own[len(below)+1:]
	}
	project.Owner, project.Name = path.Split(own)
	project.Owner = strings.Trim(project.Owner, "/")
	return project
}

// ours returns the webhooks that lead to the receivers, which take deliveries at any path.
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

// lanes are those that a step takes its turn in.
func (t *target) lanes() []lane {
	host := t.base
	if u, err := url.Parse(t.base); err == nil {
		host = strings.ToLower(u.Host)
	}
	return []lane{
		{name: "token " + t.service.Token.Namespace + "/" + t.service.Token.Name, every: tokenEvery},
		{name: "namespace " + t.owner.Namespace, every: namespaceEvery, atOnce: atOnce},
		{name: "host " + host, every: hostEvery, atOnce: atOnce},
	}
}
