// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// read returns the Repository; nil if it is deleted. Usually the cached one is enough, so that a
// start next to thousands of Repositories needs no read of each: a write of the status fails if the
// cache is behind, and a change that it lacks wakes this key. A Repository is read live if claims
// may end or be made: it seems to be deleted, or its URL and its claims differ.
func (r *Reconciler) read(ctx context.Context, owner types.NamespacedName) (*pacv1alpha1.Repository, error) {
	cached := r.cachedRepository(owner)
	if r.settings.Load().Namespaces.Leave(owner.Namespace) { // all claims end, and so may the rights in that namespace
		return cached.DeepCopy(), nil
	}
	if cached != nil {
		canonical, _ := r.wantedURL(cached)
		settled := canonical == "" || cached.Status.ObservedGeneration == 0 || r.hasClaim(owner, canonical) ||
			!r.serves(owner.Namespace)
		if settled && len(r.others(owner, canonical)) == 0 {
			return cached.DeepCopy(), nil
		}
	}
	return r.readLive(ctx, owner)
}

// readLive returns the Repository from the API server; nil if there is none.
func (r *Reconciler) readLive(ctx context.Context, owner types.NamespacedName) (*pacv1alpha1.Repository, error) {
	live, err := r.client.PipelinesascodeV1alpha1().Repositories(owner.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	if fault.Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Repository %s: %w", owner, fault.FromKube(fault.VerbRead, err))
	}
	return live, nil
}

func (r *Reconciler) cachedRepository(owner types.NamespacedName) *pacv1alpha1.Repository {
	obj, exists, err := r.repositories.GetByKey(owner.String())
	if err != nil || !exists {
		return nil
	}
	repository, ok := obj.(*pacv1alpha1.Repository)
	if !ok {
		return nil
	}
	return repository
}

// replaced are the versions of Repositories whose status this process has replaced. While the cache
// still has such a version, another write would be a conflict. The zero value is empty.
type replaced struct {
	mu       sync.Mutex
	versions map[types.NamespacedName]version
}

type version struct {
	resource string
	status   *pacv1alpha1.RepositoryStatus
}

// note records that the status before was replaced.
func (p *replaced) note(repository *pacv1alpha1.Repository, before *pacv1alpha1.RepositoryStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.versions == nil {
		p.versions = map[types.NamespacedName]version{}
	}
	p.versions[keyOf(repository)] = version{repository.ResourceVersion, before}
}

// still reports whether the cache still has a replaced version. Any other version ends that.
func (p *replaced) still(repository *pacv1alpha1.Repository) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, found := p.versions[keyOf(repository)]
	if !found {
		return false
	}
	if known.resource == repository.ResourceVersion && equality.Semantic.DeepEqual(known.status, &repository.Status) {
		return true
	}
	delete(p.versions, keyOf(repository))
	return false
}

func (p *replaced) forget(owner types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.versions, owner)
}

func keyOf(repository *pacv1alpha1.Repository) types.NamespacedName {
	return types.NamespacedName{Namespace: repository.Namespace, Name: repository.Name}
}
