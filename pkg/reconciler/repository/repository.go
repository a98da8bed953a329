// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	pkgreconciler "knative.dev/pkg/reconciler"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// reconcileTimeout is ample for the few calls of a reconcile, each of which the API server ends within seconds.
const reconcileTimeout = 30 * time.Second

// Reconciler implements knative's controller.Reconciler and reconciler.LeaderAware.
type Reconciler struct {
	pkgreconciler.LeaderAwareFuncs

	client versioned.Interface
	// namespace is Plumbline's own: claims live there.
	namespace string
	// claims is a cache; nothing is denied and nothing is written on its word alone.
	claims       cache.Indexer
	openEvents   func(namespace, name string) []*v1alpha1.GitEvent
	eventsSynced func() bool
	recorder     record.EventRecorder
	clock        clock.PassiveClock
}

var (
	_ controller.Reconciler     = (*Reconciler)(nil)
	_ pkgreconciler.LeaderAware = (*Reconciler)(nil)
)

// Reconcile brings the claims of one Repository, which may be gone, and its conditions up to date.
func (r *Reconciler) Reconcile(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, reconcileTimeout)
	defer cancel()
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return fmt.Errorf("key of a Repository: %w", err)
	}
	owner := types.NamespacedName{Namespace: namespace, Name: name}
	if !r.IsLeaderFor(owner) {
		return controller.NewSkipKey(key) // being promoted enqueues it again
	}
	repository, err := r.client.PipelinesascodeV1alpha1().Repositories(namespace).Get(ctx, name, metav1.GetOptions{})
	if fault.Gone(err) {
		return fault.Requeue(r.release(ctx, owner, "")...)
	}
	if err != nil {
		return fault.Requeue(fmt.Errorf("reading Repository %s: %w", owner, fault.FromKube(fault.VerbRead, err)))
	}
	return fault.Requeue(r.serve(ctx, repository)...)
}

// serve does what can be done and returns why the rest could not be.
func (r *Reconciler) serve(ctx context.Context, repository *pacv1alpha1.Repository) []error {
	before := repository.Status.DeepCopy()
	owner := types.NamespacedName{Namespace: repository.Namespace, Name: repository.Name}
	canonical, invalid := r.wantedURL(repository)
	errs := append(r.release(ctx, owner, canonical),
		r.markURL(ctx, repository, canonical, invalid), r.markCredentials(repository))
	repository.Status.ObservedGeneration = repository.Generation
	if equality.Semantic.DeepEqual(before, &repository.Status) {
		return errs
	}
	// The object was read live at the start of this reconcile: its resource version makes a lost race a conflict.
	_, err := r.client.PipelinesascodeV1alpha1().Repositories(owner.Namespace).UpdateStatus(ctx, repository, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return errs // deleted meanwhile: its deletion wakes this key
	}
	if err != nil {
		return append(errs, fmt.Errorf("writing the status of Repository %s: %w", owner, fault.FromKube(fault.VerbUpdate, err)))
	}
	r.tell(repository, before)
	return errs
}

// wantedURL returns the canonical URL to claim, "" for none.
func (r *Reconciler) wantedURL(repository *pacv1alpha1.Repository) (string, error) {
	if repository.Spec.URL == "" {
		if repository.Namespace == r.namespace {
			return "", nil
		}
		return "", fault.Invalidf(reasonInvalidURL, "spec.url is empty: set it to the web URL of the repository")
	}
	canonical, err := v1alpha1.CanonicalURL(repository.Spec.URL)
	if err != nil {
		return "", fault.Invalidf(reasonInvalidURL, "spec.url: %w", err)
	}
	return canonical, nil
}
