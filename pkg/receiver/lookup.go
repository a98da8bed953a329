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
)

// View reads claims and Repositories, from a cache or live. Errors are those of the API server.
type View struct {
	Claim      func(ctx context.Context, name string) (*v1alpha1.RepositoryClaim, error)
	Repository func(ctx context.Context, namespace, name string) (*pacv1alpha1.Repository, error)
}

// CachedView reads what informers have seen; claims are those of one namespace.
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

// LiveView asks the API server; claims are those of one namespace. Each call may take as long as
// wait.
func LiveView(client versioned.Interface, claimNamespace string, wait APIWait) View {
	return View{
		Claim: func(ctx context.Context, name string) (*v1alpha1.RepositoryClaim, error) {
			ctx, cancel := wait.call(ctx)
			defer cancel()
			return client.PlumblineV1alpha1().RepositoryClaims(claimNamespace).Get(ctx, name, metav1.GetOptions{})
		},
		Repository: func(ctx context.Context, namespace, name string) (*pacv1alpha1.Repository, error) {
			ctx, cancel := wait.call(ctx)
			defer cancel()
			return client.PipelinesascodeV1alpha1().Repositories(namespace).Get(ctx, name, metav1.GetOptions{})
		},
	}
}

// byURL finds the Repositories that name a URL, by its canonical form, and byGroup those of the
// same host and group.
const (
	byURL   = "receiver.plumbline.dev/url"
	byGroup = "receiver.plumbline.dev/group"
)

// RepositoryIndexers are what NamedBy and BesideBy need.
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
			return nil, nil // nobody can claim it
		}
	}
	return cache.Indexers{byURL: by(func(canonical string) string { return canonical }), byGroup: by(groupOf)}
}

// groupOf returns a canonical URL up to the first part of its path, e.g. https://gitlab.com/acme of
// https://gitlab.com/acme/team/app.
func groupOf(canonical string) string {
	u, err := url.Parse(canonical)
	if err != nil {
		return ""
	}
	group, _, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	return u.Scheme + "://" + u.Host + "/" + group
}

// NamedBy returns Lookup.Named of a cache that has the RepositoryIndexers.
func NamedBy(repositories cache.Indexer) func(canonical string) bool {
	return func(canonical string) bool {
		named, err := repositories.ByIndex(byURL, canonical)
		return err == nil && len(named) > 0
	}
}

// BesideBy returns Lookup.Beside of a cache that has the RepositoryIndexers: first those that name
// the URL, in the order of their names, then all of its group, of each namespace one before any has
// its second: nobody displaces others by the Repositories of one namespace.
func BesideBy(
	repositories cache.Indexer,
) func(canonical string) (naming []*pacv1alpha1.Repository, group func() []*pacv1alpha1.Repository) {
	by := func(index, value string) []*pacv1alpha1.Repository {
		objects, err := repositories.ByIndex(index, value)
		if err != nil { // only for an index that there is not
			return nil
		}
		var some []*pacv1alpha1.Repository
		for _, object := range objects {
			if repository, ok := object.(*pacv1alpha1.Repository); ok {
				some = append(some, repository)
			}
		}
		slices.SortFunc(some, func(a, b *pacv1alpha1.Repository) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		return some
	}
	return func(canonical string) (naming []*pacv1alpha1.Repository, group func() []*pacv1alpha1.Repository) {
		return by(byURL, canonical), func() []*pacv1alpha1.Repository { return inTurn(by(byGroup, groupOf(canonical))) }
	}
}

// inTurn takes one Repository of each namespace, then the second of each, and so on.
func inTurn(sorted []*pacv1alpha1.Repository) []*pacv1alpha1.Repository {
	turn, taken := map[*pacv1alpha1.Repository]int{}, map[string]int{}
	for _, r := range sorted {
		turn[r] = taken[r.Namespace]
		taken[r.Namespace]++
	}
	slices.SortStableFunc(sorted, func(a, b *pacv1alpha1.Repository) int { return cmp.Compare(turn[a], turn[b]) })
	return sorted
}

// Lookup finds the Repository that owns a URL.
type Lookup struct {
	Cached, Live View
	// Unverified is as Live, with a client that no delivery of a known sender needs.
	Unverified View
	// Named reports whether any Repository names a canonical URL, as far as a cache knows.
	Named func(canonical string) bool
	// Beside are the Repositories that name the URL, and what returns all of the same group, as far
	// as a cache knows.
	Beside func(canonical string) (naming []*pacv1alpha1.Repository, group func() []*pacv1alpha1.Repository)
	// Barred reports whether a namespace cannot claim a canonical URL whoever else wants it: nobody
	// waits for that.
	Barred func(canonical, namespace string) bool
}

// Known returns what the caches say, nil when they know no Repository of the URL.
func (l Lookup) Known(ctx context.Context, canonical string) *pacv1alpha1.Repository {
	repository, _, err := l.Cached.find(ctx, canonical)
	if err != nil {
		return nil
	}
	return repository
}

// Find returns the Repository of a canonical URL: the one its claim names, if it still has that
// URL. What the cache does not know is asked live, because a cache lies for seconds. Nothing owns
// the URL: an Ignored fault that says why. Any other error means that it is not known; so it is
// while a Repository names the URL and nobody has claimed it, e.g. because the controllers are
// down. Once there is a claim, who owns the URL is decided.
func (l Lookup) Find(ctx context.Context, canonical string) (*pacv1alpha1.Repository, error) {
	if repository := l.Known(ctx, canonical); repository != nil {
		return repository, nil
	}
	return l.ask(ctx, l.Live, canonical)
}

// FindUnverified is as Find for a delivery that nobody vouches for, whose URL is not Known.
func (l Lookup) FindUnverified(ctx context.Context, canonical string) (*pacv1alpha1.Repository, error) {
	return l.ask(ctx, l.Unverified, canonical)
}

func (l Lookup) ask(ctx context.Context, live View, canonical string) (*pacv1alpha1.Repository, error) {
	repository, namespace, err := live.find(ctx, canonical)
	if fault.Is(err, fault.Ignored) && l.moves(canonical, namespace) {
		return nil, fault.Transientf(fault.ReasonNotClaimedYet, "the RepositoryClaim of %s has not moved yet "+
			"to the Repository of namespace %s that has the URL now: are the controllers running?", canonical, namespace)
	}
	if repository != nil || err != nil {
		return repository, err
	}
	if l.Named(canonical) && l.claimable(canonical) {
		return nil, fault.Transientf(
			fault.ReasonNotClaimedYet,
			"a Repository has the URL %s and no RepositoryClaim yet: are the controllers running?",
			canonical,
		)
	}
	return nil, fault.Ignoredf("NoRepository", "no Repository in this cluster has the URL %s", canonical)
}

// moves reports whether the claim of a URL is about to move within its namespace: its Repository
// was renamed, and another one names the URL.
func (l Lookup) moves(canonical, namespace string) bool {
	naming, _ := l.Beside(canonical)
	return !l.Barred(canonical, namespace) &&
		slices.ContainsFunc(naming, func(r *pacv1alpha1.Repository) bool { return r.Namespace == namespace })
}

// claimable reports whether one of the Repositories that name the URL can claim it.
func (l Lookup) claimable(canonical string) bool {
	naming, _ := l.Beside(canonical)
	return slices.ContainsFunc(naming, func(r *pacv1alpha1.Repository) bool { return !l.Barred(canonical, r.Namespace) })
}

// find returns nil when nobody has claimed the URL. The namespace is that of the claim, if there is
// one.
func (v View) find(
	ctx context.Context,
	canonical string,
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
		return nil, owner.Namespace, fault.Ignoredf(
			"NoRepository",
			"the Repository that had the URL %s is gone, or this installation does not serve its namespace (serve-namespaces)",
			canonical,
		)
	}
	if err != nil {
		return nil, owner.Namespace, fmt.Errorf(
			"reading the Repository of %s: %w",
			canonical,
			fault.FromKube(fault.VerbRead, err),
		)
	}
	if has, err := v1alpha1.CanonicalURL(
		repository.Spec.URL,
	); err != nil || has != canonical ||
		claim.Spec.URL != canonical {
		return nil, owner.Namespace, fault.Ignoredf(
			"NoRepository",
			"the Repository that had the URL %s has another URL now",
			canonical,
		)
	}
	return repository, owner.Namespace, nil
}

// notFound answers what Find could not find.
func notFound(err error) answer {
	switch f := fault.Of(err); {
	case f.Class == fault.Ignored:
		return undecoded(err)
	case f.Reason == fault.ReasonNotClaimedYet:
		return unavailable("the Repository of this URL is not served yet: send the delivery again in a moment", err)
	}
	return unavailable("the Repository cannot be looked up at the moment", err)
}
