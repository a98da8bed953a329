// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// Annotate writes into an event's annotations what its metadata alone has to tell: whose it is and what its payload takes.
func Annotate(event metav1.Object, repository types.NamespacedName, bytes int64) {
	annotations := event.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[plumbline.RepositoryAnnotation] = repository.String()
	annotations[plumbline.StoredBytesAnnotation] = strconv.FormatInt(bytes, 10)
	event.SetAnnotations(annotations)
}

// Trim keeps of an object's metadata what Handler reads. It is a transform for an informer.
func Trim(obj any) (any, error) {
	event, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	return &metav1.PartialObjectMetadata{TypeMeta: event.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: event.Namespace, Name: event.Name, UID: event.UID, ResourceVersion: event.ResourceVersion, Annotations: Kept(event),
	}}, nil
}

// Kept are the annotations that Handler reads; nil if there are none.
func Kept(event metav1.Object) map[string]string {
	kept := map[string]string{}
	for _, name := range []string{plumbline.RepositoryAnnotation, plumbline.StoredBytesAnnotation} {
		if value, ok := event.GetAnnotations()[name]; ok {
			kept[name] = value
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// Handler keeps the ledger up to date with an informer of open events, whole or metadata alone.
func (l *Ledger) Handler() cache.ResourceEventHandler {
	seen := func(obj any) {
		if event, ok := obj.(metav1.Object); ok {
			repository, bytes := read(event)
			l.Seen(event.GetName(), repository, bytes)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    seen,
		UpdateFunc: func(_, changed any) { seen(changed) },
		DeleteFunc: func(obj any) {
			if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = missed.Obj
			}
			if event, ok := obj.(metav1.Object); ok {
				l.Gone(event.GetName())
			}
		},
	}
}

// read returns nothing of an event that the version before recorded.
func read(event metav1.Object) (types.NamespacedName, int64) {
	namespace, name, ok := strings.Cut(event.GetAnnotations()[plumbline.RepositoryAnnotation], string(types.Separator))
	bytes, err := strconv.ParseInt(event.GetAnnotations()[plumbline.StoredBytesAnnotation], 10, 64)
	if !ok || err != nil || bytes < 0 {
		return types.NamespacedName{}, 0
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, bytes
}
