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
	w        *world
	resource string
}

func (l lister) all() map[string]*metav1.ObjectMeta {
	all := map[string]*metav1.ObjectMeta{}
	switch l.resource {
	case "gitevents":
		for name, e := range l.w.events {
			all[name] = &e.ObjectMeta
		}
	case "eventpayloads":
		for name, p := range l.w.payloads {
			all[name] = &p.ObjectMeta
		}
	case runs:
		for key, run := range l.w.runs {
			all[key] = &run.ObjectMeta
		}
	case "tombstonepages":
		for name, p := range l.w.pages {
			all[name] = &p.ObjectMeta
		}
	}
	return all
}

func (l lister) List(_ context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	if o.Limit <= 0 || o.Limit > 500 {
		l.w.t.Errorf("a list of %d objects", o.Limit)
	}
	if err := l.w.called("list "+l.resource, o.Continue); err != nil {
		return nil, err
	}
	all := l.all()
	if o.Continue == "" { // a list goes on with the names it began with
		l.w.names = slices.Sorted(maps.Keys(all))
	}
	from, _ := slices.BinarySearch(l.w.names, o.Continue)
	list, last := &metav1.PartialObjectMetadataList{}, ""
	for _, name := range l.w.names[from:] {
		if _, there := all[name]; !there || name <= o.Continue || !l.selects(o.FieldSelector, name) {
			continue
		}
		if int64(len(list.Items)) == o.Limit {
			list.Continue = last
			break
		}
		list.Items, last = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: *all[name]}), name
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
