// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/roundrobin"
	"github.com/plumbline-ci/plumbline/pkg/receiver/recorder"
)

// View reads claims and Repositories, from a cache or live. Errors are those of the API server.
type View struct {
	Claim      func(ctx context.Context, name string) (*v1alpha1.RepositoryClaim, error)
	Repository func(ctx context.Context, namespace, name string) (*pacv1alpha1.Repository, error)
}

// CachedView reads from the caches of informers; claims are those of one namespace.
func CachedView(
	claim func(name string) (*v1alpha1.RepositoryClaim, error),
	repository func(namespace, name string) (*pacv1alpha1.Repository, error),
) View {
	return View{
		Claim: func(_ context.Context, name string) (*v1alpha1.RepositoryClaim, error) { return claim(name) },
		Repository: func(_ context.Context, namespace, name string) (*pacv1alpha1.Repository, error) {
			return repository(namespace, name)
		},
	}
}

// LiveView reads from the API server; claims are those of one namespace. The timeout bounds each
// call.
func LiveView(client versioned.Interface, claimNamespace string, timeout recorder.CallTimeout) View {
	return View{
		Claim: func(ctx context.Context, name string) (*v1alpha1.RepositoryClaim, error) {
			ctx, cancel := timeout.Context(ctx)
			defer cancel()
			return client.PlumblineV1alpha1().RepositoryClaims(claimNamespace).Get(ctx, name, metav1.GetOptions{})
		},
		Repository: func(ctx context.Context, namespace, name string) (*pacv1alpha1.Repository, error) {
			ctx, cancel := timeout.Context(ctx)
			defer cancel()
			return client.PipelinesascodeV1alpha1().Repositories(namespace).Get(ctx, name, metav1.GetOptions{})
		},
	}
}

// byURL indexes Repositories by their canonical URL, byGroup by its host and group, and byName by
// their names.
const (
	byURL   = "receiver.plumbline.dev/url"
	byGroup = "receiver.plumbline.dev/group"
	byName  = "receiver.plumbline.dev/name"
)

// RepositoryIndexers are what NeighboursIn and NamedIn need.
func RepositoryIndexers() cache.Indexers {
	by := func(key func(canonical string) string) cache.IndexFunc {
		return func(obj any) ([]string, error) {
			repository, ok := obj.(*pacv1alpha1.Repository)
			if !ok {
				return nil, nil
			}
			if canonical, err := v1alpha1.CanonicalURL(repository.Spec.URL); err == nil {
				return []string{key(canonical)}, nil
			}
			return nil, nil // a URL that cannot be claimed
		}
	}
	return cache.Indexers{
		byURL:   by(func(canonical string) string { return canonical }),
		byGroup: by(groupOf),
		byName: func(obj any) ([]string, error) {
			if repository, ok := obj.(*pacv1alpha1.Repository); ok {
				return []string{repository.Name}, nil
			}
			return nil, nil
		},
	}
}

// groupOf returns a canonical URL up to the first part of its path: https://gitlab.com/acme for
// https://gitlab.com/acme/team/app.
func groupOf(canonical string) string {
	u, err := url.Parse(canonical)
	if err != nil {
		return ""
	}
	group, _, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	return u.Scheme + "://" + u.Host + "/" + group
}

// NeighboursIn returns Lookup.Neighbours for a cache that has the RepositoryIndexers. The
// Repositories with the URL are sorted by name. In the group, the namespaces take turns: so no
// namespace displaces others by having many Repositories.
func NeighboursIn(repositories cache.Indexer) Neighbours {
	by := func(index, value string) []*pacv1alpha1.Repository { return inIndex(repositories, index, value) }
	return func(canonical string) (naming []*pacv1alpha1.Repository, group func() []*pacv1alpha1.Repository) {
		return by(byURL, canonical), func() []*pacv1alpha1.Repository {
			all := by(byGroup, groupOf(canonical))
			roundrobin.Sort(all, func(r *pacv1alpha1.Repository) string { return r.Namespace })
			return all
		}
	}
}

// NamedIn returns Lookup.Named for a cache that has the RepositoryIndexers.
func NamedIn(repositories cache.Indexer) func(name string) []*pacv1alpha1.Repository {
	return func(name string) []*pacv1alpha1.Repository { return inIndex(repositories, byName, name) }
}

// inIndex returns the Repositories with a value in an index, sorted by name.
func inIndex(repositories cache.Indexer, index, value string) []*pacv1alpha1.Repository {
	objects, err := repositories.ByIndex(index, value)
	if err != nil { // only if there is no such index
		return nil
	}
	var found []*pacv1alpha1.Repository
	for _, object := range objects {
		if repository, ok := object.(*pacv1alpha1.Repository); ok {
			found = append(found, repository)
		}
	}
	slices.SortFunc(found, func(a, b *pacv1alpha1.Repository) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return found
}

// Neighbours returns the Repositories that have a canonical URL, and a function that returns all
// Repositories of the URL's group, as far as a cache knows.
type Neighbours func(canonical string) (naming []*pacv1alpha1.Repository, group func() []*pacv1alpha1.Repository)

// Lookup finds the Repository that owns a URL.
type Lookup struct {
	Cached, Live View
	// Unverified is Live with a client that no verified delivery needs.
	Unverified View
	Neighbours Neighbours
	// Named returns the Repositories with a name, of all namespaces, as far as a cache knows.
	Named func(name string) []*pacv1alpha1.Repository
	// CannotClaim reports whether a namespace can never claim a canonical URL, so that nothing has
	// to wait for that.
	CannotClaim func(canonical, namespace string) bool
}

// Known returns the Repository that the caches know for a URL, nil if they know none.
func (l Lookup) Known(ctx context.Context, canonical string) *pacv1alpha1.Repository {
	repository, _, err := l.Cached.find(ctx, canonical)
	if err != nil {
		return nil
	}
	return repository
}

// Find returns the Repository that owns a canonical URL: the one that its claim names, if it still
// has the URL. What the caches do not know is read live, because they may be seconds old.
//
// If nothing owns the URL, the error is an Ignored fault that says why. Any other error means that
// the owner is not known. This includes a URL that a Repository has and that is not claimed yet,
// for example because the controllers are down. Once there is a claim, the owner is decided.
func (l Lookup) Find(ctx context.Context, canonical string) (*pacv1alpha1.Repository, error) {
	if repository := l.Known(ctx, canonical); repository != nil {
		return repository, nil
	}
	return l.read(ctx, l.Live, canonical)
}

// FindUnverified is Find for an unverified delivery whose URL is not Known.
func (l Lookup) FindUnverified(ctx context.Context, canonical string) (*pacv1alpha1.Repository, error) {
	return l.read(ctx, l.Unverified, canonical)
}

func (l Lookup) read(ctx context.Context, live View, canonical string) (*pacv1alpha1.Repository, error) {
	repository, namespace, err := live.find(ctx, canonical)
	if fault.Is(err, fault.Ignored) && l.claimMoves(canonical, namespace) {
		return nil, fault.Transientf(fault.ReasonNotClaimedYet, "the RepositoryClaim of %s has not moved yet "+
			"to the Repository of namespace %s that has the URL now: are the controllers running?", canonical, namespace)
	}
	if repository != nil || err != nil {
		return repository, err
	}
	if l.isClaimable(canonical) {
		return nil, fault.Transientf(fault.ReasonNotClaimedYet,
			"a Repository has the URL %s and no RepositoryClaim yet: are the controllers running?", canonical)
	}
	return nil, fault.Ignoredf(reasonNoRepository, "no Repository in this cluster has the URL %s", canonical)
}

// claimMoves reports whether the claim of a URL is about to move within its namespace: its
// Repository was renamed, or another one has the URL now.
func (l Lookup) claimMoves(canonical, namespace string) bool {
	naming, _ := l.Neighbours(canonical)
	return !l.CannotClaim(canonical, namespace) &&
		slices.ContainsFunc(naming, func(r *pacv1alpha1.Repository) bool { return r.Namespace == namespace })
}

// isClaimable reports whether a Repository has the URL that can claim it.
func (l Lookup) isClaimable(canonical string) bool {
	naming, _ := l.Neighbours(canonical)
	return slices.ContainsFunc(naming, func(r *pacv1alpha1.Repository) bool {
		return !l.CannotClaim(canonical, r.Namespace)
	})
}

// find returns nil if the URL is not claimed. The namespace is that of the claim's Repository, if
// there is a claim.
func (v View) find(
	ctx context.Context, canonical string,
) (repository *pacv1alpha1.Repository, namespace string, err error) {
	claim, err := v.Claim(ctx, v1alpha1.ClaimName(canonical))
	if fault.Gone(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading the claim of %s: %w", canonical, fault.FromKube(fault.VerbRead, err))
	}
	owner := claim.Spec.Repository
	repository, err = v.Repository(ctx, owner.Namespace, owner.Name)
	if fault.Gone(err) {
		return nil, owner.Namespace, fault.Ignoredf(reasonNoRepository,
			"the Repository that had the URL %s is gone, or this installation does not serve its namespace (serve-namespaces)",
			canonical)
	}
	if err != nil {
		return nil, owner.Namespace, fmt.Errorf("reading the Repository of %s: %w",
			canonical, fault.FromKube(fault.VerbRead, err))
	}
	has, err := v1alpha1.CanonicalURL(repository.Spec.URL)
	if err != nil || has != canonical || claim.Spec.URL != canonical {
		return nil, owner.Namespace, fault.Ignoredf(reasonNoRepository,
			"the Repository that had the URL %s has another URL now", canonical)
	}
	return repository, owner.Namespace, nil
}
