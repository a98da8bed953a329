// SPDX-License-Identifier: Apache-2.0

package supersede

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Patcher changes GitEvents.
type Patcher interface {
	Patch(
		ctx context.Context,
		name string,
		pt types.PatchType,
		data []byte,
		o metav1.PatchOptions,
		subresources ...string,
	) (*v1alpha1.GitEvent, error)
}

// Annotate annotates an event, if it is still the same object, with what stops its runs. It may be
// repeated.
func Annotate(
	ctx context.Context, events Patcher, from string, cancels *v1alpha1.Cancellation, other *v1alpha1.GitEvent,
) error {
	anyVersion := *other
	anyVersion.ResourceVersion = ""
	_, err := annotate(ctx, events, from, cancels, &anyVersion)
	return err
}

// annotate returns the annotated event, nil if it is gone: then it starts nothing. A version of the
// event that is not the newest is a conflict. An event without a version is annotated whatever its
// version is.
func annotate(
	ctx context.Context, events Patcher, from string, cancels *v1alpha1.Cancellation, event *v1alpha1.GitEvent,
) (*v1alpha1.GitEvent, error) {
	name, value, err := cancels.CancelsAs(from)
	if err != nil {
		return nil, err
	}
	metadata := map[string]any{"uid": event.UID, "annotations": map[string]string{name: value}}
	if event.ResourceVersion != "" {
		metadata["resourceVersion"] = event.ResourceVersion
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, fmt.Errorf("encoding the patch of GitEvent %s: %w", event.Name, err)
	}
	patched, err := events.Patch(ctx, event.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	switch {
	case err == nil:
		return patched, nil
	case fault.Gone(err):
		return nil, nil
	}
	refused := fault.FromKube(fault.VerbPatch, fmt.Errorf("cancelling GitEvent %s: %w", event.Name, err))
	if event.ResourceVersion != "" && refused.Class == fault.Conflict {
		return nil, refused
	}
	return nil, refused.AsTransient()
}
