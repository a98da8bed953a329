// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	names "github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
)

const (
	// orphanAge is how old a payload without an event must be before it is deleted. The receiver
	// writes it before its event, and reuses one only up to half that age (payloadReuse there).
	orphanAge = time.Hour
	// lateAfter is how long after the end of an event its Secrets are deleted again: by then a call
	// of a process that did not know of the end has ended. Until lateFor that is repeated, for a
	// process that was paused.
	lateAfter = 10 * time.Minute
	lateFor   = 30 * time.Minute
	// lateLimit is how long the deletes are retried while the API server refuses them.
	lateLimit = 24 * time.Hour
	// lateBudget bounds the deletes of one event: a team's admission webhook may hang at each.
	lateBudget = 20 * time.Second
	// lateHang is the least time of a delete that fails because of such a webhook. The next pass
	// handles the team's other events.
	lateHang = 5 * time.Second
)

// collectPayload deletes a payload whose event does not exist or is settled.
func (r *Reconciler) collectPayload(ctx context.Context, payload *metav1.PartialObjectMetadata) error {
	return r.skipUnlessTransient(ctx, payload.Name, r.deleteOrphan(ctx, payload))
}

func (r *Reconciler) deleteOrphan(ctx context.Context, payload *metav1.PartialObjectMetadata) error {
	if r.clock.Since(payload.CreationTimestamp.Time) < orphanAge {
		return nil
	}
	event := payload.Labels[plumbline.EventLabel]
	if len(validation.IsDNS1123Subdomain(event)) != 0 { // created or changed by hand: its user is unknown
		return fault.Operatorf(reasonNoEvent, "EventPayload %s names no event in its label %s: delete it if it is not needed",
			payload.Name, plumbline.EventLabel)
	}
	needed, err := r.isOpen(ctx, event)
	if needed || err != nil {
		return err
	}
	err = r.payloads.Delete(ctx, payload.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &payload.UID}})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fault.FromKube(fault.VerbDelete, fmt.Errorf("deleting EventPayload %s: %w", payload.Name, err))
}

// isOpen reads the cache first: most payloads are of unsettled events. Only a live read shows that
// an event is not open.
func (r *Reconciler) isOpen(ctx context.Context, name string) (bool, error) {
	if r.open(name) {
		return true, nil
	}
	event, err := r.events.Get(ctx, name, metav1.GetOptions{})
	if fault.Gone(err) {
		return false, nil
	}
	if err != nil {
		return false, fault.FromKube(fault.VerbRead, fmt.Errorf("reading GitEvent %s: %w", name, err))
	}
	return !event.Settled(), nil
}

// collectSecrets deletes the Secrets of a marked event once more. A process that was paused, or
// whose call took long, may have created one after another process settled the event. The
// controller may not list the teams' Secrets, but knows their names.
func (r *Reconciler) collectSecrets(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	return r.skipUnlessTransient(ctx, object.Name, r.deleteLateSecrets(ctx, object.Name))
}

func (r *Reconciler) deleteLateSecrets(ctx context.Context, name string) error {
	event, err := r.events.Get(ctx, name, metav1.GetOptions{})
	if fault.Gone(err) {
		return nil
	}
	if err != nil {
		return fault.FromKube(fault.VerbRead, fmt.Errorf("reading GitEvent %s: %w", name, err))
	}
	if !event.Settled() || !event.Status.LateSecrets {
		return nil
	}
	age := r.clock.Since(event.SettledTime())
	if age < lateAfter {
		return nil
	}
	tried, failed := r.deleteUnlessHung(ctx, event)
	if age < lateFor || age < lateLimit && (failed != nil || !tried) {
		return failed
	}
	event.Status.LateSecrets = false
	if _, err := r.events.UpdateStatus(ctx, event, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fault.FromKube(fault.VerbUpdate, fmt.Errorf("taking the mark from GitEvent %s: %w", name, err))
	}
	return nil
}

// deleteUnlessHung deletes the Secrets of an event, unless its namespace hangs, and records whether
// it does. It counts what it skips.
func (r *Reconciler) deleteUnlessHung(ctx context.Context, event *v1alpha1.GitEvent) (tried bool, failed error) {
	team, began := event.Spec.Repository.Namespace, r.clock.Now()
	if r.found.hangs[team] {
		r.metrics.skipped(ctx, r.phases[r.at.phase].name)
		return false, nil
	}
	failed = r.deleteSecrets(ctx, event)
	r.found.hangs[team] = failed != nil && r.clock.Since(began) >= lateHang
	return true, failed
}

func (r *Reconciler) deleteSecrets(ctx context.Context, event *v1alpha1.GitEvent) error {
	ctx, cancel := context.WithTimeout(ctx, lateBudget)
	defer cancel()
	// Its plan may never have been accepted.
	faults := []error{r.deleteSecret(ctx, event.Namespace, names.PlanSecretName(event.Name))}
	for i := range event.Status.Runs {
		faults = append(faults, r.deleteUnlessLeft(ctx, event.Namespace, &event.Status.Runs[i]))
	}
	return errors.Join(faults...)
}

// deleteUnlessLeft deletes the git-auth Secret of a run, unless its event has left it to the run: a
// late one has the Repository as its owner. The Secret of another installation for a run of the
// same delivery stays. The controller may not read Secrets in all namespaces, but the response to
// an empty patch is the Secret.
func (r *Reconciler) deleteUnlessLeft(ctx context.Context, installation string, run *v1alpha1.Run) error {
	name := names.SecretName(run.Key())
	secret, err := r.secrets.Secrets(run.Namespace).
		Patch(ctx, name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fault.FromKube(fault.VerbPatch, fmt.Errorf("reading secret %s/%s: %w", run.Namespace, name, err)).AsOwn()
	}
	if names.Foreign(secret, installation) || names.IsOwnedByRunAlone(secret, run) {
		return nil
	}
	return r.deleteSecret(ctx, run.Namespace, name)
}

func (r *Reconciler) deleteSecret(ctx context.Context, namespace, name string) error {
	err := r.secrets.Secrets(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fault.FromKube(fault.VerbDelete, fmt.Errorf("deleting secret %s/%s: %w", namespace, name, err))
}
