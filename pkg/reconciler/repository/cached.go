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

// read returns the Repository, nil if it is gone. A process that starts beside thousands of
// Repositories must not read each of them: the cache's copy will do, because a status is written
// over the version that it was computed from only, and a change that the cache does not know yet
// wakes this key. That a Repository is gone, or has another URL than one of its claims, ends
// claims, and what it may claim is kept for it for a day: it is read live. Of a new one the cache
// has all there is.
func (r *Reconciler) read(ctx context.Context, owner types.NamespacedName) (*pacv1alpha1.Repository, error) {
	cached := r.cachedRepository(owner)
	if r.settings.Load().Namespaces.Leave(owner.Namespace) { // all claims end, and the rights there may have ended
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

// readLive returns what the API server has, nil when there is no such Repository.
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

// replaced is which versions of Repositories this process has written a status over. While the
// cache still has such a version, another write would be refused. The zero value knows nothing.
type replaced struct {
	mu       sync.Mutex
	versions map[types.NamespacedName]version
}

type version struct {
	resource string
	status   *pacv1alpha1.RepositoryStatus
}

// note takes the status that was replaced, and the Repository that it was of.
func (p *replaced) note(repository *pacv1alpha1.Repository, before *pacv1alpha1.RepositoryStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.versions == nil {
		p.versions = map[types.NamespacedName]version{}
	}
	p.versions[keyOf(repository)] = version{repository.ResourceVersion, before}
}

// still reports whether this is such a version. Any other one is news, and what was known is
// forgotten.
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
