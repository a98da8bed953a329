// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/claim"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
)

// served are the repositories of a Git service that Repositories of this cluster serve.
type served struct {
	// owners are by the service's number of the repository.
	owners map[int64]v1alpha1.ClaimOwner
	// unbound is set if the number of a repository is not known: no event of it was planned since
	// its Repository was created.
	unbound bool
	// forwards is set if receivers forward deliveries to Pipelines-as-Code. No number of its
	// repositories is known.
	forwards bool
}

// servedAt reads from the caches what is served at a host.
func (s *source) servedAt(baseURL string) served {
	host := hostOf(baseURL)
	found := served{owners: map[int64]v1alpha1.ClaimOwner{}, forwards: s.forwardedAt(host)}
	claimed, _ := s.claims.List(labels.Everything()) // a cache's list cannot fail
	for _, claim := range claimed {
		switch {
		case hostOf(claim.Spec.URL) != host, !s.settings().Namespaces.Serve(claim.Spec.Repository.Namespace):
		case claim.Status.Bound == nil:
			found.unbound = true
		default:
			found.owners[claim.Status.Bound.ID] = claim.Spec.Repository
		}
	}
	all, _ := s.repositories.List(labels.Everything())
	for _, repository := range all {
		canonical, err := v1alpha1.CanonicalURL(repository.Spec.URL)
		if err != nil || hostOf(canonical) != host {
			continue
		}
		claim, err := s.claims.Get(v1alpha1.ClaimName(canonical))
		if err != nil { // not claimed yet
			found.unbound = true
			continue
		}
		found.expect(repository, claim)
	}
	return found
}

// forwardedAt reports whether receivers forward deliveries of repositories at a host to
// Pipelines-as-Code. Those that it has not received are requested again like all others.
func (s *source) forwardedAt(host string) bool {
	settings := s.settings()
	if !settings.PipelinesAsCode.Runs() {
		return false
	}
	return slices.ContainsFunc(s.everywhere(), func(repository *pacv1alpha1.Repository) bool {
		canonical, err := v1alpha1.CanonicalURL(repository.Spec.URL)
		return err == nil && hostOf(canonical) == host && !settings.Namespaces.Serve(repository.Namespace)
	})
}

// expect adds the repository that a claimed Repository will serve next, if that is another one than
// its URL was bound to last.
func (s *served) expect(repository *pacv1alpha1.Repository, urlClaim *v1alpha1.RepositoryClaim) {
	owner := urlClaim.Spec.Repository
	if owner.Namespace != repository.Namespace || owner.Name != repository.Name {
		return // another Repository has claimed the URL
	}
	identity, err := claim.Expected(repository, urlClaim.Status)
	switch {
	case err != nil: // its annotation cannot be read, so its events start nothing
	case identity == nil:
		s.unbound = true
	default:
		s.owners[identity.ID] = owner
	}
}

// may reports whether a Repository of this cluster may serve a repository. A wrong true costs one
// redelivery, which the receiver ignores.
func (s served) may(repository int64) bool {
	_, known := s.owners[repository]
	return known || s.unbound || s.forwards
}

// assign names the namespace of each missed delivery, and forgets deliveries for repositories that
// are no longer served.
func (s served) assign(l *ledger) {
	l.Missed = slices.DeleteFunc(l.Missed, func(d redelivery.Delivery) bool { return !s.may(d.Repository) })
	for i := range l.Missed {
		d := &l.Missed[i]
		owner, known := s.owners[d.Repository]
		d.Tenant = owner.Namespace
		if s.forwards && !known { // Pipelines-as-Code may be down while others succeed: GitHub ends this
			d.Refused = min(d.Refused, redelivery.MaxRefused-1)
		}
	}
}

func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return provider.Host(u) // github-url may name the default port
}
