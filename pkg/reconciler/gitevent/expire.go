// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"fmt"
	"sort"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/resources"
)

const (
	// sweepKey is the key under which the leader of its bucket removes what is no longer needed. No GitEvent has this name.
	sweepKey = "sweep"
	// orphanAge is how old a payload must be before it counts as unreferenced: the receiver writes it before its event.
	orphanAge = time.Hour
	// page is how many objects one list call returns.
	page = 500
)

// sweep deletes settled events past their retention, payloads without an open event and secrets that came late, then
// comes back later.
func (r *Reconciler) sweep(ctx context.Context) error {
	settled, err := r.settled(ctx)
	if err == nil {
		err = r.expireEvents(ctx, settled)
	}
	if err == nil {
		err = r.collectPayloads(ctx)
	}
	if err == nil {
		err = r.collectSecrets(ctx, settled)
	}
	return r.requeue(err, fault.Throttledf("NextSweep", sweepEvery, "the next sweep"))
}

// settled lists the settled events, with no more than the sweep needs of each.
func (r *Reconciler) settled(ctx context.Context) ([]v1alpha1.GitEvent, error) {
	var settled []v1alpha1.GitEvent
	options := metav1.ListOptions{FieldSelector: "status.phase=" + string(v1alpha1.PhaseSettled), Limit: page}
	for {
		list, err := r.events.List(ctx, options)
		if err != nil {
			return nil, fault.FromKube(fault.VerbRead, fmt.Errorf("listing settled GitEvents: %w", err))
		}
		for i := range list.Items {
			event := v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: list.Items[i].Name, UID: list.Items[i].UID},
				Status: v1alpha1.GitEventStatus{SettledAt: list.Items[i].Status.SettledAt}}
			if r.mayGetSecrets(&event) {
				event.Status.Runs = list.Items[i].Status.Runs
			}
			settled = append(settled, event)
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return settled, nil
		}
	}
}

// mayGetSecrets tells whether the sweep looks for late secrets of a settled event: after the last call of any process
// that did not know of the end (reconcileDeadline), and for two sweeps.
func (r *Reconciler) mayGetSecrets(event *v1alpha1.GitEvent) bool {
	age := r.clock.Since(event.Status.SettledAt.Time)
	return age >= sweepEvery && age < 3*sweepEvery
}

// collectSecrets deletes the secrets of settled events once more. A process that was paused, or whose call was on its
// way for long, may have created one after another process settled the event. The controller may not list the teams'
// secrets, and need not: their names are known.
func (r *Reconciler) collectSecrets(ctx context.Context, settled []v1alpha1.GitEvent) error {
	var faults []error
	for i := range settled {
		if !r.mayGetSecrets(&settled[i]) {
			continue
		}
		for _, run := range settled[i].Status.Runs {
			faults = append(faults, r.deleteSecret(ctx, run.Namespace, resources.SecretName(run.Name)))
		}
		faults = append(faults, r.deleteSecret(ctx, r.Namespace, planSecret(settled[i].Name))) // its plan may never have been accepted
	}
	return first(faults)
}

// expireEvents deletes the settled events that are older than the retention, and the oldest above the cap.
func (r *Reconciler) expireEvents(ctx context.Context, settled []v1alpha1.GitEvent) error {
	cfg := config.FromContext(ctx)
	for _, event := range expired(settled, r.clock.Now().Add(-cfg.SettledRetention), cfg.SettledCap) {
		err := r.events.Delete(ctx, event.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &event.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fault.FromKube(fault.VerbDelete, fmt.Errorf("deleting GitEvent %s: %w", event.Name, err))
		}
	}
	return nil
}

// expired picks the events settled before the limit, and the oldest of the rest above keep.
func expired(settled []v1alpha1.GitEvent, limit time.Time, keep int) []v1alpha1.GitEvent {
	sort.Slice(settled, func(i, j int) bool { return settled[i].Status.SettledAt.Before(settled[j].Status.SettledAt) })
	n := sort.Search(len(settled), func(i int) bool { return settled[i].Status.SettledAt.After(limit) })
	return settled[:max(n, len(settled)-keep)]
}

// collectPayloads deletes the payloads whose event does not exist or is settled. Only metadata is listed.
func (r *Reconciler) collectPayloads(ctx context.Context) error {
	payloads := r.metadata.Resource(v1alpha1.SchemeGroupVersion.WithResource("eventpayloads")).Namespace(r.Namespace)
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := payloads.List(ctx, options)
		if err != nil {
			return fault.FromKube(fault.VerbRead, fmt.Errorf("listing EventPayloads: %w", err))
		}
		for i := range list.Items {
			if err := r.collect(ctx, &list.Items[i]); err != nil {
				return err
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

func (r *Reconciler) collect(ctx context.Context, payload *metav1.PartialObjectMetadata) error {
	if r.clock.Since(payload.CreationTimestamp.Time) < orphanAge {
		return nil
	}
	event, err := r.events.Get(ctx, payload.Labels[plumbline.EventLabel], metav1.GetOptions{})
	if err == nil && !event.Settled() {
		return nil
	}
	if err != nil && !fault.Gone(err) {
		return fault.FromKube(fault.VerbRead, fmt.Errorf("reading the event of EventPayload %s: %w", payload.Name, err))
	}
	err = r.payloads.Delete(ctx, payload.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &payload.UID}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fault.FromKube(fault.VerbDelete, fmt.Errorf("deleting EventPayload %s: %w", payload.Name, err))
	}
	return nil
}
