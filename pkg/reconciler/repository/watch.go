// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	duckv1 "knative.dev/pkg/apis/duck/v1"
	"knative.dev/pkg/controller"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/store/informerhandler"
)

const (
	// byClaimName indexes Repositories by the shard of the name of their claim.
	byClaimName = "repository.plumbline.dev/claim-name"
	// byOwner indexes claims by the shard of the key of their owner, which may be deleted.
	byOwner = "repository.plumbline.dev/owner"
	// shards is the number of keys of an index. One key for each name would take a third of the
	// memory of the objects. Of 10,000 names ten share one, and the caller picks the right ones.
	shards = 1024
)

func shard(name string) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name)) // a hash never fails
	return strconv.Itoa(int(sum.Sum32() % shards))
}

func repositoryIndexers() cache.Indexers {
	return cache.Indexers{byClaimName: func(obj any) ([]string, error) {
		repository, ok := obj.(*pacv1alpha1.Repository)
		if !ok {
			return nil, nil
		}
		if name := claimName(repository.Spec.URL); name != "" {
			return []string{shard(name)}, nil
		}
		return nil, nil
	}}
}

// claimName returns the name of the claim of a URL; "" if the URL cannot be claimed.
func claimName(url string) string {
	canonical, err := v1alpha1.CanonicalURL(url)
	if err != nil {
		return ""
	}
	return v1alpha1.ClaimName(canonical)
}

func claimIndexers() cache.Indexers {
	return cache.Indexers{byOwner: func(obj any) ([]string, error) {
		claim, ok := obj.(*v1alpha1.RepositoryClaim)
		if !ok {
			return nil, nil
		}
		return []string{shard(ownerOf(claim).String())}, nil
	}}
}

func ownerOf(claim *v1alpha1.RepositoryClaim) types.NamespacedName {
	return types.NamespacedName{Namespace: claim.Spec.Repository.Namespace, Name: claim.Spec.Repository.Name}
}

// watches are what wakes a Repository.
type watches struct {
	repositories, claims cache.SharedIndexInformer
	events               EventInformer
	// limited reports whether a Repository has a limit or slots; global is the one whose limit is
	// that of all others.
	limited func(types.NamespacedName) bool
	global  types.NamespacedName
	// recent is called with each unsettled event before and after its change, changed with each
	// Repository.
	recent  func(before, after *v1alpha1.GitEvent)
	changed func(before, after *pacv1alpha1.Repository)
}

// wire adds the indexes and handlers. The informers must not have been started. synced reports
// whether the open events from before the start are known and counted.
func (w watches) wire(impl *controller.Impl, used *quota.Ledger) (synced func() bool, err error) {
	if err := w.repositories.AddIndexers(repositoryIndexers()); err != nil {
		return nil, fmt.Errorf("indexing Repositories: %w", err)
	}
	if err := w.claims.AddIndexers(claimIndexers()); err != nil {
		return nil, fmt.Errorf("indexing RepositoryClaims: %w", err)
	}
	for _, informer := range []cache.SharedIndexInformer{w.repositories, w.claims} {
		if err := informer.SetTransform(trim); err != nil {
			return nil, fmt.Errorf("keeping Repositories and claims small: %w", err)
		}
	}
	if _, err := w.repositories.AddEventHandler(controller.HandleAll(impl.Enqueue)); err != nil {
		return nil, fmt.Errorf("watching Repositories: %w", err)
	}
	if _, err := w.repositories.AddEventHandler(
		w.globalChanged(func() { impl.GlobalResync(w.repositories) }),
	); err != nil {
		return nil, fmt.Errorf("watching the global Repository: %w", err)
	}
	if _, err := w.repositories.AddEventHandler(informerhandler.ForPairs(w.changed)); err != nil {
		return nil, fmt.Errorf("watching the settings of Repositories: %w", err)
	}
	if _, err := w.claims.AddEventHandler(controller.HandleAll(w.claimChanged(impl.EnqueueKey))); err != nil {
		return nil, fmt.Errorf("watching RepositoryClaims: %w", err)
	}
	if _, err := w.events.AddEventHandler(eventHandler(impl.EnqueueKey, w.limited)); err != nil {
		return nil, fmt.Errorf("watching GitEvents: %w", err)
	}
	if _, err := w.events.AddEventHandler(informerhandler.ForPairs(w.recent)); err != nil {
		return nil, fmt.Errorf("watching GitEvents for status.recent: %w", err)
	}
	added, err := w.events.AddEventHandler(informerhandler.For(used.Watched, used.Deleted))
	if err != nil {
		return nil, fmt.Errorf("adding up GitEvents: %w", err)
	}
	return added.HasSynced, nil
}

// trim removes managed fields and the last applied configuration, which are half of an idle
// Repository and are not sent with a status. The texts of conditions are the same for nearly all
// Repositories, and are stored once.
func trim(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
		o.SetNamespace(unique.Make(o.GetNamespace()).Value())
		delete(o.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	}
	if repository, ok := object.(*pacv1alpha1.Repository); ok {
		conditions := make(duckv1.Conditions, len(repository.Status.Conditions)) // a decoder allocates more than it needs
		copy(conditions, repository.Status.Conditions)
		repository.Status.Conditions = conditions
		for i := range conditions {
			c := &conditions[i]
			c.Type, c.Status = unique.Make(c.Type).Value(), unique.Make(c.Status).Value()
			c.Severity = unique.Make(c.Severity).Value()
			c.Reason, c.Message = unique.Make(c.Reason).Value(), unique.Make(c.Message).Value()
		}
	}
	return object, nil
}

// budgetChanged wakes the Repositories whose deliveries are refused, or recorded again, from now
// on.
func (w watches) budgetChanged(enqueue func(types.NamespacedName)) func(quota.Scope) {
	return func(scope quota.Scope) {
		if scope.Name != "" {
			enqueue(types.NamespacedName{Namespace: scope.Namespace, Name: scope.Name})
			return
		}
		for _, obj := range w.repositories.GetStore().List() {
			if r, ok := obj.(*pacv1alpha1.Repository); ok && (scope.Namespace == "" || r.Namespace == scope.Namespace) {
				enqueue(types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
			}
		}
	}
}

// rivals returns the Repositories that name the URL of a claim, sorted by name: a condition that
// names one of several must name the same one in each attempt.
func rivals(repositories cache.Indexer) func(string) []types.NamespacedName {
	return func(claim string) []types.NamespacedName {
		naming, err := repositories.ByIndex(byClaimName, shard(claim))
		if err != nil {
			return nil // the index exists: wire added it
		}
		var all []types.NamespacedName
		for _, obj := range naming {
			if r, ok := obj.(*pacv1alpha1.Repository); ok && claimName(r.Spec.URL) == claim {
				all = append(all, types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
			}
		}
		slices.SortFunc(all, func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
		return all
	}
}

// claimChanged wakes the claim's owner, and the Repositories that wait for its URL.
func (w watches) claimChanged(enqueue func(types.NamespacedName)) func(any) {
	return func(obj any) {
		claim, ok := informerhandler.Object[*v1alpha1.RepositoryClaim](obj)
		if !ok {
			return
		}
		enqueue(ownerOf(claim))
		for _, waiting := range rivals(w.repositories.GetIndexer())(claim.Name) {
			enqueue(waiting)
		}
	}
}

// eventHandler wakes a Repository when the problem that its events wait for changes, or, if it has
// a limit, when its runs change. The many other updates of an event do not wake it.
func eventHandler(
	enqueue func(types.NamespacedName), limited func(types.NamespacedName) bool,
) cache.ResourceEventHandler {
	wake := func(before, after *v1alpha1.GitEvent) {
		event := after
		if event == nil {
			event = before
		}
		owner := types.NamespacedName{Namespace: event.Spec.Repository.Namespace, Name: event.Spec.Repository.Name}
		if sameProblem(newest(before), newest(after)) && (sameRuns(before, after) || !limited(owner)) {
			return
		}
		enqueue(owner)
	}
	return informerhandler.ForPairs(wake)
}
