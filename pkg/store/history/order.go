// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// Patience is how long after its delivery an event waits until older ones are planned.
	Patience = time.Minute
	// An event that waits for older ones is retried after as long as it has waited, within these
	// bounds.
	soonest = time.Second
	latest  = 10 * time.Second
)

// Writer reads GitEvents live, and annotates them.
type Writer interface {
	Lister
	Patch(
		ctx context.Context,
		name string,
		pt types.PatchType,
		data []byte,
		o metav1.PatchOptions,
		subresources ...string,
	) (*v1alpha1.GitEvent, error)
}

// First is called before an event's plan depends on earlier events of its subject. Two such events
// that are planned at the same time must not both start a failed pipeline again. So First makes one
// of them read the plan of the other:
//
//   - While an older event of the subject is about to be planned, First returns a Throttled fault.
//     It does not wait for an event that itself waits for something, nor longer than Patience.
//   - It annotates each other unplanned event of the subject whose plan may depend on earlier
//     events. That changes the event's version. So a plan that was made without this event cannot
//     be stored: the other event reads again, and finds this one.
//
// After First has returned nil, a read of the subject is complete, if the event's own plan can be
// stored over the version that the event had before First was called.
func First(ctx context.Context, events Writer, event *v1alpha1.GitEvent, subject string, now time.Time) error {
	var rivals []*v1alpha1.GitEvent
	var older string
	waited := now.Sub(event.RecordedAt())
	err := EachOpen(ctx, events, subject, func(other *v1alpha1.GitEvent) bool {
		if other.Name == event.Name || other.Status.Plan.Decided() {
			return true
		}
		if waited < Patience && comesFirst(other, event) {
			older = other.Name
		}
		if other.Spec.Comment != nil || other.Spec.Rerun != nil {
			rivals = append(rivals, Trimmed(other))
		}
		return older == ""
	})
	if err != nil {
		return err
	}
	if older != "" {
		wait := min(max(waited, soonest), latest)
		return fault.Throttledf(fault.ReasonBusy, wait, "GitEvent %s is planned first", older)
	}
	for _, rival := range rivals {
		if err := Outdate(ctx, events, rival, nil); err != nil {
			return err
		}
	}
	return nil
}

// Outdate annotates an event, if it still exists, with the version of it that was listed and with
// notes, which may be nil. A reconcile of it that has started cannot store its plan and reads
// again. Outdate may be repeated.
func Outdate(ctx context.Context, events Writer, rival *v1alpha1.GitEvent, notes map[string]string) error {
	annotations := map[string]string{plumbline.OutdatedAnnotation: rival.ResourceVersion}
	maps.Copy(annotations, notes)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": rival.UID, "annotations": annotations}})
	if err != nil {
		return fmt.Errorf("encoding the patch of GitEvent %s: %w", rival.Name, err)
	}
	_, err = events.Patch(ctx, rival.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err == nil || fault.Gone(err) { // what is gone starts nothing
		return nil
	}
	refused := fmt.Errorf("telling GitEvent %s to read again what has run: %w", rival.Name, err)
	return fault.FromKube(fault.VerbPatch, refused).AsTransient()
}

// comesFirst reports whether an unplanned event comes before another one in the order of List, and
// is about to be planned.
func comesFirst(event, other *v1alpha1.GitEvent) bool {
	return compare(event, other) < 0 && len(event.Status.Waits) == 0 && !event.Spec.Closes()
}
