// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/gitevents"
)

// An event is woken when another one cancels it, once per cancellation, and not by its own writes
// after that.
func TestCancellationWakesAnEvent(t *testing.T) {
	t.Parallel()
	d := newDesk()
	version := func(by ...string) *v1alpha1.GitEvent {
		e := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{
			Namespace: "plumbline", Name: "pull-1", ResourceVersion: d.next(), Annotations: map[string]string{"x": "y"},
		}}
		for _, name := range by {
			e.Annotations[plumbline.CancelAnnotation+name] = "{}"
		}
		return gitevents.Trim(e)
	}
	before := version()
	for _, after := range []*v1alpha1.GitEvent{version(), version("close-1"), version("close-1"),
		version("close-1", "comment-2"), version("close-1", "comment-2")} {
		d.OnEvent(d).OnUpdate(before, after)
		before = after
	}
	if want := []string{"pull-1", "pull-1"}; !slices.Equal(d.woken, want) {
		t.Errorf("woken %v, want %v", d.woken, want)
	}
}
