// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned"
	paclisters "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// View reads claims and Repositories, from a cache or live. Errors are those of the API server.
type View struct {
	Claim      func(ctx context.Context, name string) (*v1alpha1.RepositoryClaim, error)
	Repository func(ctx context.Context, namespace, name string) (*pacv1alpha1.Repository, error)
}

// CachedView reads what informers have seen; claims are those of one namespace.
func CachedView(claims listers.RepositoryClaimNamespaceLister, repositories paclisters.RepositoryLister) View {
	return View{
		Claim: func(_ context.Context, name string) (*v1alpha1.RepositoryClaim, error) { return claims.Get(name) },
		Repository: func(_ context.Context, namespace, name string) (*pacv1alpha1.Repository, error) {
			return repositories.Repositories(namespace).Get(name)
		},
	}
}

// LiveView asks the API server; claims are those of one namespace. Each call is bounded.
func LiveView(client versioned.Interface, claimNamespace string) View {
	return View{
		Claim: func(ctx context.Context, name string) (*v1alpha1.RepositoryClaim, error) {
			ctx, cancel := context.WithTimeout(ctx, kubeCallBudget)
			defer cancel()
			return client.PlumblineV1alpha1().RepositoryClaims(claimNamespace).Get(ctx, name, metav1.GetOptions{})
		},
		Repository: func(ctx context.Context, namespace, name string) (*pacv1alpha1.Repository, error) {
			ctx, cancel := context.WithTimeout(ctx, kubeCallBudget)
			defer cancel()
			return client.PipelinesascodeV1alpha1().Repositories(namespace).Get(ctx, name, metav1.GetOptions{})
		},
	}
}

// Lookup finds the Repository that owns a URL.
type Lookup struct{ Cached, Live View }

// Find returns the Repository of a canonical URL: the one its claim names, if it still has that URL. What the cache
// does not know is asked live, because a cache lies for seconds. Nothing owns the URL: an Ignored fault that says why.
// Any other error means that it is not known.
func (l Lookup) Find(ctx context.Context, canonical string) (*pacv1alpha1.Repository, error) {
	if repository, err := l.Cached.find(ctx, canonical); err == nil {
		return repository, nil
	}
	return l.Live.find(ctx, canonical)
}

func (v View) find(ctx context.Context, canonical string) (*pacv1alpha1.Repository, error) {
	claim, err := v.Claim(ctx, v1alpha1.ClaimName(canonical))
	if fault.Gone(err) {
		return nil, fault.Ignoredf("NoRepository", "no Repository in this cluster has the URL %s", canonical)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the claim of %s: %w", canonical, fault.FromKube(fault.VerbRead, err))
	}
	owner := claim.Spec.Repository
	repository, err := v.Repository(ctx, owner.Namespace, owner.Name)
	if fault.Gone(err) {
		return nil, fault.Ignoredf("NoRepository", "the Repository that had the URL %s is gone", canonical)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Repository of %s: %w", canonical, fault.FromKube(fault.VerbRead, err))
	}
	if has, err := v1alpha1.CanonicalURL(repository.Spec.URL); err != nil || has != canonical || claim.Spec.URL != canonical {
		return nil, fault.Ignoredf("NoRepository", "the Repository that had the URL %s has another URL now", canonical)
	}
	return repository, nil
}
