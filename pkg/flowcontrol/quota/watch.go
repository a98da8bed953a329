// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"maps"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// Use is what one unsettled event uses, as its annotations say.
type Use struct {
	// Repository is the event's; empty if the version before recorded it.
	Repository types.NamespacedName
	// Subject is the event's label of that name: its pull request, for instance.
	Subject string
	// Bytes is what its payload and its plan take in etcd, Plan how many of these are the plan's.
	Bytes, Plan int64
}

// Annotations returns the annotations with these values.
func (u Use) Annotations() map[string]string {
	annotations := map[string]string{
		plumbline.RepositoryAnnotation:  u.Repository.String(),
		plumbline.StoredBytesAnnotation: strconv.FormatInt(u.Bytes, 10),
	}
	if u.Plan > 0 {
		annotations[plumbline.PlanBytesAnnotation] = strconv.FormatInt(u.Plan, 10)
	}
	return annotations
}

// Annotate adds the Repository of an event and the bytes of its payload to its annotations, so that
// its metadata is enough for a Ledger.
func Annotate(event metav1.Object, repository types.NamespacedName, bytes int64) {
	annotations := event.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, Use{Repository: repository, Bytes: bytes}.Annotations())
	event.SetAnnotations(annotations)
}

// Trim removes all metadata that Read does not need. It is a transform for an informer.
func Trim(obj any) (any, error) {
	event, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	return &metav1.PartialObjectMetadata{TypeMeta: event.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace:       event.Namespace,
		Name:            event.Name,
		UID:             event.UID,
		ResourceVersion: event.ResourceVersion,
		Annotations:     Kept(event),
		Labels:          map[string]string{plumbline.SubjectLabel: event.Labels[plumbline.SubjectLabel]},
	}}, nil
}

// Kept returns the annotations that say what an event uses; nil if there are none.
func Kept(event metav1.Object) map[string]string {
	kept := map[string]string{}
	for _, name := range []string{
		plumbline.RepositoryAnnotation, plumbline.StoredBytesAnnotation,
		plumbline.PlanBytesAnnotation, plumbline.PlanDigestAnnotation,
	} {
		if value, ok := event.GetAnnotations()[name]; ok {
			kept[name] = value
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// Watched counts what an event uses that an informer has, whole or metadata alone.
func (l *Ledger) Watched(event metav1.Object) { l.Seen(event.GetName(), Read(event)) }

// Deleted stops counting an event that an informer has no more.
func (l *Ledger) Deleted(event metav1.Object) { l.Gone(event.GetName()) }

// Read returns what an event uses, nothing of one that the version before recorded.
func Read(event metav1.Object) Use {
	annotations := event.GetAnnotations()
	namespace, name, ok := strings.Cut(annotations[plumbline.RepositoryAnnotation], string(types.Separator))
	bytes, err := strconv.ParseInt(annotations[plumbline.StoredBytesAnnotation], 10, 64)
	if !ok || err != nil || bytes < 0 {
		return Use{}
	}
	plan, err := strconv.ParseInt(annotations[plumbline.PlanBytesAnnotation], 10, 64)
	if err != nil || plan < 0 || plan > bytes {
		plan = 0
	}
	return Use{
		Repository: types.NamespacedName{Namespace: namespace, Name: name},
		Subject:    event.GetLabels()[plumbline.SubjectLabel],
		Bytes:      bytes,
		Plan:       plan,
	}
}
