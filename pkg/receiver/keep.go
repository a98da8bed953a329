// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/store/tombstone"
)

// keepApart is the least time between two notes of a redelivery in one record. The retention is at
// least a day longer than Git services send a delivery again.
const keepApart = time.Hour

// keep notes in an event that its delivery has come again, so that what remembers it is kept from
// now on: the redelivery may be sent again for as long as the delivery. there is false if the event
// was deleted since it was read.
func (r *Recorder) keep(ctx context.Context, event *v1alpha1.GitEvent) (there bool, err error) {
	now, last := r.Clock.Now(), event.CreationTimestamp.Time
	if at, err := time.Parse(
		time.RFC3339,
		event.Annotations[plumbline.DeliveredAgainAnnotation],
	); err == nil &&
		at.After(last) {
		last = at
	}
	if now.Sub(last) < keepApart {
		return true, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         event.UID,
		"annotations": map[string]string{plumbline.DeliveredAgainAnnotation: now.UTC().Format(time.RFC3339)},
	}})
	if err != nil {
		return false, fmt.Errorf("encoding the patch of GitEvent %s: %w", event.Name, err)
	}
	_, err = r.Events.Patch(ctx, event.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if fault.Gone(err) || apierrors.IsConflict(err) { // another event has its name
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf(
			"noting in GitEvent %s that its delivery came again: %w",
			event.Name,
			fault.FromKube(fault.VerbUpdate, err),
		)
	}
	return true, nil
}

// keepBuried is keep for what is left of an event that was deleted. changed is that the page is not
// as it was read.
func (r *Recorder) keepBuried(
	ctx context.Context,
	page *v1alpha1.TombstonePage,
	entry tombstone.Entry,
) (changed bool, err error) {
	if r.Retention == nil {
		return false, nil
	}
	until := r.Clock.Now().Add(r.Retention())
	if until.Sub(entry.Until) < keepApart {
		return false, nil
	}
	patch, err := tombstone.Move(page, entry, until)
	if err != nil {
		return false, fmt.Errorf("encoding the patch of TombstonePage %s: %w", page.Name, err)
	}
	_, err = r.Tombstones.Patch(ctx, page.Name, types.JSONPatchType, patch, metav1.PatchOptions{})
	if fault.Gone(err) || apierrors.IsInvalid(err) || apierrors.IsConflict(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf(
			"noting in TombstonePage %s that a delivery came again: %w",
			page.Name,
			fault.FromKube(fault.VerbUpdate, err),
		)
	}
	return false, nil
}
