// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// lister lists metadata page by page.
type lister struct {
	metadata.ResourceInterface
	w        *env
	resource string
}

func (l lister) names() []string {
	switch l.resource {
	case "gitevents":
		return slices.Sorted(maps.Keys(l.w.events))
	case "eventpayloads":
		return slices.Sorted(maps.Keys(l.w.payloads))
	case runs:
		return slices.Sorted(maps.Keys(l.w.runs))
	case "tombstonepages":
		return slices.Sorted(maps.Keys(l.w.pages))
	}
	return nil
}

// object returns what exists of a name; nil if there is nothing.
func (l lister) object(name string) *metav1.ObjectMeta {
	event, payload, run, page := l.w.events[name], l.w.payloads[name], l.w.runs[name], l.w.pages[name]
	switch {
	case l.resource == "gitevents" && event != nil:
		return &event.ObjectMeta
	case l.resource == "eventpayloads" && payload != nil:
		return &payload.ObjectMeta
	case l.resource == runs && run != nil:
		return &run.ObjectMeta
	case l.resource == "tombstonepages" && page != nil:
		return &page.ObjectMeta
	}
	return nil
}

func (l lister) List(_ context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	if o.Limit <= 0 || o.Limit > 500 {
		l.w.t.Errorf("a list of %d objects", o.Limit)
	}
	if err := l.w.called("list "+l.resource, o.Continue); err != nil {
		return nil, err
	}
	if o.Continue == "" { // a list continues with the names that it started with
		l.w.names = l.names()
	}
	from, _ := slices.BinarySearch(l.w.names, o.Continue)
	list, last := &metav1.PartialObjectMetadataList{}, ""
	for _, name := range l.w.names[from:] {
		object := l.object(name)
		if object == nil || name <= o.Continue || !l.selects(o.FieldSelector, name) {
			continue
		}
		if int64(len(list.Items)) == o.Limit {
			list.Continue = last
			break
		}
		list.Items, last = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: *object}), name
	}
	return list, nil
}

func (l lister) selects(selector, name string) bool {
	if selector == "" {
		return true
	}
	s := l.w.events[name].Status
	if strings.Contains(selector, "status.unreported=true") {
		return s.Phase == v1alpha1.PhaseSettled && s.Unreported
	}
	late := strings.Contains(selector, "status.lateSecrets=true")
	return s.Phase == v1alpha1.PhaseSettled && s.LateSecrets == late
}
