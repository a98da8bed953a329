// SPDX-License-Identifier: Apache-2.0

package recorder

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

// verdict says what an existing GitEvent means for a delivery that would have its name.
type verdict int

const (
	// alreadyRecorded: it records this delivery.
	alreadyRecorded verdict = iota
	// processAgain: it records this delivery, ended without runs, and may end otherwise now.
	processAgain
	// foreign: it records something else.
	foreign
)

// compare compares an existing GitEvent with a delivery.
//
// The delivery is the same when service, body and, unless the body identifies the event, delivery
// key are. What differs between honest copies does not count: ReceivedAt, and the Repository if its
// URL was claimed again in between. A body that GitLab sends again under the same key has lost its
// e-mail addresses; there the key and what happened count.
func compare(existing *v1alpha1.GitEvent, spec *v1alpha1.GitEventSpec) verdict {
	have := &existing.Spec
	if have.Provider != spec.Provider || have.Host != spec.Host {
		return foreign
	}
	if spec.Body == nil && have.DeliveryKey != spec.DeliveryKey {
		return foreign
	}
	if have.Payload.Digest != spec.Payload.Digest && (spec.Body != nil || have.Happening() != spec.Happening()) {
		return foreign
	}
	if existing.MayRunAgain() {
		return processAgain
	}
	return alreadyRecorded
}

// noteInEvent notes in an event that its delivery was sent again, so that its retention counts from
// now: the redelivery can be sent again for as long as the delivery could. It reports whether the
// event still exists.
func (r *Recorder) noteInEvent(ctx context.Context, event *v1alpha1.GitEvent) (exists bool, err error) {
	now := r.Clock.Now()
	if now.Sub(v1alpha1.LastDelivered(event)) < noteInterval {
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
	if fault.Gone(err) || apierrors.IsConflict(err) { // Conflict: another event has the name now
		return false, nil
	}
	if err != nil {
		err = fault.FromKube(fault.VerbUpdate, err)
		return false, fmt.Errorf("noting the redelivery in GitEvent %s: %w", event.Name, err)
	}
	return true, nil
}

// noteInTombstone does the same for the tombstone of a deleted event. Changed reports that the page
// is no longer as it was read.
func (r *Recorder) noteInTombstone(
	ctx context.Context, page *v1alpha1.TombstonePage, entry tombstone.Entry,
) (changed bool, err error) {
	until := r.Clock.Now().Add(r.Retention())
	if until.Sub(entry.Until) < noteInterval {
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
		err = fault.FromKube(fault.VerbUpdate, err)
		return false, fmt.Errorf("noting the redelivery in TombstonePage %s: %w", page.Name, err)
	}
	return false, nil
}
