// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"net/url"

	"k8s.io/apimachinery/pkg/labels"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/claim"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// served are the repositories of a Git service that Repositories of this cluster serve.
type served struct {
	// owners are by the service's number of the repository.
	owners map[int64]v1alpha1.ClaimOwner
	// unbound tells that the number of some is not known: no event of them was planned yet, or none
	// since their Repository was made.
	unbound bool
}

// servedAt reads what is served at a host from the caches.
func (r *Reconciler) servedAt(baseURL string) served {
	s := served{owners: map[int64]v1alpha1.ClaimOwner{}}
	host := hostOf(baseURL)
	claimed, _ := r.claims.List(labels.Everything()) // a cache's list cannot fail
	for _, claim := range claimed {
		switch {
		case hostOf(claim.Spec.URL) != host, !r.namespaces().Serve(claim.Spec.Repository.Namespace):
		case claim.Status.Bound == nil:
			s.unbound = true
		default:
			s.owners[claim.Status.Bound.ID] = claim.Spec.Repository
		}
	}
	all, _ := r.repositories.List(labels.Everything())
	for _, repository := range all {
		canonical, err := v1alpha1.CanonicalURL(repository.Spec.URL)
		if err != nil || hostOf(canonical) != host {
			continue
		}
		claim, err := r.claims.Get(v1alpha1.ClaimName(canonical))
		if err != nil { // not claimed yet
			s.unbound = true
			continue
		}
		s.expect(repository, claim)
	}
	return s
}

// expect adds the repository whose events a claimed Repository is to be served next, if that is not
// what its URL was bound to last.
func (s *served) expect(repository *pacv1alpha1.Repository, urlClaim *v1alpha1.RepositoryClaim) {
	owner := urlClaim.Spec.Repository
	if owner.Namespace != repository.Namespace || owner.Name != repository.Name {
		return // the URL is another one's
	}
	identity, err := claim.Expected(repository, urlClaim.Status)
	switch {
	case err != nil: // its annotation cannot be read, so none of its events starts anything
	case identity == nil:
		s.unbound = true
	default:
		s.owners[identity.ID] = owner
	}
}

// may reports whether deliveries of a repository may be for somebody here. One more redelivery is
// all that a wrong yes costs: the receiver ignores it.
func (s served) may(repository int64) bool {
	_, known := s.owners[repository]
	return known || s.unbound
}

func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return provider.Host(u) // github-url may name the port that https has anyway
}
