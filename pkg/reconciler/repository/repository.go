// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"errors"
	"fmt"
	"time"

	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	pkgreconciler "knative.dev/pkg/reconciler"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
)

// reconcileTimeout is ample for the few calls of a reconcile. The API server ends each of them
// within seconds.
const reconcileTimeout = 30 * time.Second

// Reconciler implements knative's controller.Reconciler and reconciler.LeaderAware.
type Reconciler struct {
	pkgreconciler.LeaderAwareFuncs

	client versioned.Interface
	tekton tektonv1.PipelineRunsGetter
	// namespace is Plumbline's own, which has the claims.
	namespace string
	// repositories and claims are caches. Nothing is denied or deleted because of a cache alone.
	repositories, claims cache.Indexer
	replaced             replaced
	priorities           priorities
	unseen               unseen
	recents              recents
	// rivals returns the Repositories in the cache that name the URL of a claim.
	rivals   func(claim string) []types.NamespacedName
	settings interface{ Load() *config.Config }
	// global is the name of the global Repository in namespace.
	global       string
	openEvents   func(namespace, name string) []*v1alpha1.GitEvent
	runs         cache.KeyListerGetter
	eventsSynced func() bool
	budget       *quota.Ledger
	recorder     record.EventRecorder
	clock        clock.PassiveClock
	retries      *backoff.Timers
	hanging      hanging
	// wake enqueues a Repository, in addition to what the reconcile returns.
	wake func(owner types.NamespacedName, after time.Duration)
}

var (
	_ controller.Reconciler     = (*Reconciler)(nil)
	_ pkgreconciler.LeaderAware = (*Reconciler)(nil)
)

// The steps of a reconcile, as retries names them.
const (
	stepClaim   = "claim"
	stepRelease = "release"
	stepStatus  = "status"
)

// Reconcile updates the claims and the conditions of one Repository, which may be deleted. Each
// step has its own retries (docs/adr/0012).
func (r *Reconciler) Reconcile(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return fmt.Errorf("key of a Repository: %w", err)
	}
	owner := types.NamespacedName{Namespace: namespace, Name: name}
	if !r.IsLeaderFor(owner) {
		r.retries.Forget(owner.String())
		r.forget(owner)
		return controller.NewSkipKey(key) // the leader's promotion enqueues it there
	}
	err = r.withWorker(owner, func() error { return r.reconcile(ctx, owner) })
	if err == nil {
		r.retries.Forget(owner.String())
		return nil
	}
	after, known := backoff.KnownWait(err)
	if next, failing := r.retries.Next(owner.String(), r.clock.Now()); failing && (!known || next < after) {
		after, known = next, true
	}
	if known {
		r.wake(owner, after)
	}
	return err
}

// forget drops what this process knows of a Repository that is deleted, or that another process
// leads.
func (r *Reconciler) forget(owner types.NamespacedName) {
	r.replaced.forget(owner)
	r.priorities.forget(owner)
	r.unseen.forget(owner)
	r.recents.forget(owner)
}

// try does a step, unless it failed a moment ago.
func (r *Reconciler) try(owner types.NamespacedName, step backoff.Step, do func() error) error {
	if left := r.retries.Left(owner.String(), step, r.clock.Now()); left > 0 {
		return fault.Throttledf(fault.ReasonBusy, left, "%s has just failed", step.Name)
	}
	err := do()
	r.retries.Note(owner.String(), step, err, r.clock.Now())
	return err
}

func (r *Reconciler) reconcile(ctx context.Context, owner types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, reconcileTimeout)
	defer cancel()
	repository, err := r.read(ctx, owner)
	switch {
	case err != nil:
		return backoff.Requeue(err)
	case repository == nil:
		r.forget(owner)
		return backoff.Requeue(r.release(ctx, owner, "")...)
	case r.replaced.still(repository):
		return nil // the cache is behind, and wakes this key when it catches up
	}
	switch namespaces := r.settings.Load().Namespaces; {
	case namespaces.Leave(owner.Namespace):
		return backoff.Requeue(r.leave(ctx, repository)...)
	case !namespaces.Serve(owner.Namespace):
		return backoff.Requeue(r.wait(ctx, repository)...)
	}
	return backoff.Requeue(r.serve(ctx, repository)...)
}

// serve does each step that can be done, and returns the errors of the others.
func (r *Reconciler) serve(ctx context.Context, repository *pacv1alpha1.Repository) []error {
	before := repository.Status.DeepCopy()
	owner := keyOf(repository)
	canonical, invalid := r.wantedURL(repository)
	errs := append(
		r.release(ctx, owner, canonical),
		r.try(owner, backoff.Step{Name: stepClaim, Version: canonical},
			func() error { return r.markURL(ctx, repository, canonical, invalid) }),
		r.markCredentials(repository),
	)
	errs = append(append(errs, r.admit(ctx, repository)...), r.markHeld(repository))
	r.markSettings(repository)
	r.markBudget(repository)
	settled, err := r.markRecent(ctx, repository)
	errs = append(errs, err)
	repository.Status.ObservedGeneration = repository.Generation
	step := backoff.Step{Name: stepStatus, Version: fmt.Sprint(repository.Generation)}
	if equality.Semantic.DeepEqual(before, &repository.Status) {
		// A write that failed may have succeeded, or is not needed any more.
		r.retries.Note(owner.String(), step, nil, r.clock.Now())
		r.recents.drop(owner, settled)
		return errs
	}
	if left := r.onlyRecent(repository, before); left > 0 {
		return append(errs, fault.Throttledf(reasonRecent, left, "the last events are written then"))
	}
	return append(errs, r.try(owner, step, func() error {
		if err := r.writeStatus(ctx, repository, before); err != nil {
			return err
		}
		if !equality.Semantic.DeepEqual(before.Recent, repository.Status.Recent) {
			r.recents.write(owner, r.clock.Now())
		}
		r.recents.drop(owner, settled)
		return nil
	}))
}

// writeStatus writes the status. It is a conflict if the Repository has changed since it was read.
func (r *Reconciler) writeStatus(
	ctx context.Context, repository *pacv1alpha1.Repository, before *pacv1alpha1.RepositoryStatus,
) error {
	written, err := r.client.PipelinesascodeV1alpha1().Repositories(repository.Namespace).
		UpdateStatus(ctx, repository, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil // deleted meanwhile, which wakes this key
	}
	if err != nil {
		return fmt.Errorf("writing the status of Repository %s/%s: %w", repository.Namespace, repository.Name,
			fault.FromKube(fault.VerbUpdate, err))
	}
	queue := repository.Status.Queue(r.namespace)
	if queue != nil && !equality.Semantic.DeepEqual(queue, written.Status.Queue(r.namespace)) {
		return r.notStored(ctx, repository)
	}
	r.unseen.only(keyOf(repository), queue)
	// Another definition of the kind may drop the whole status. Then there is no new version that
	// the cache could show.
	if !equality.Semantic.DeepEqual(before, &written.Status) {
		r.replaced.note(repository, before)
	}
	r.report(repository, before)
	return nil
}

// notStored reports slots that the API server has dropped silently, because the
// CustomResourceDefinition lacks their fields: it is Pipelines-as-Code's, or of an older version.
// No run of such a Repository is created. Its status may drop a condition as well, so it gets an
// Event.
func (r *Reconciler) notStored(ctx context.Context, repository *pacv1alpha1.Repository) error {
	err := fault.Operatorf(
		reasonNotStored,
		"the CustomResourceDefinition repositories.%s that the cluster has does not keep status.queues as this version writes it, so runs that wait for concurrency_limit "+
			"of Repository %s/%s may wait forever: apply Plumbline's config/300-crd-repositories.yaml, then restart the controllers and the receivers",
		pipelinesascode.GroupName,
		repository.Namespace,
		repository.Name,
	)
	logging.FromContext(ctx).
		Errorw("The slots of a Repository are not stored", "repository", keyOf(repository).String(), "error", err)
	r.recorder.Event(repository, corev1.EventTypeWarning, reasonNotStored, err.Error())
	return errors.Join(err, fault.Throttledf(reasonNotStored, slotsEvery, "the slots are written again then"))
}

// wantedURL returns the canonical URL to claim; "" for none.
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
	if err := r.notListed(repository, canonical); err != nil {
		return "", err
	}
	return canonical, nil
}
