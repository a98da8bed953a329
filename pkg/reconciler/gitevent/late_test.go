// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// An event that was there before this process led may have been another one's, which may have been paused right before it
// made a secret: the sweep has to look for it.
func TestAnEventThatWasTakenOverIsMarkedForTheSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	created := metav1.NewTime(w.clock.Now())
	for name, c := range map[string]struct {
		promoted time.Duration // after the event was created
		marked   bool
	}{
		"the lease was taken over while the event was open":         {time.Minute, true},
		"it was taken over before, as far as clocks can be trusted": {-clockSkew + time.Second, true},
		"the event came long after":                                 {-clockSkew, false},
	} {
		var leads tenure
		leads.take(created.Add(c.promoted))
		if got := leads.inherited(&v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: created}}); got != c.marked {
			t.Errorf("%s: marked %v, want %v", name, got, c.marked)
		}
	}
}

func TestTheMarkIsWrittenWhenTheEventSettles(t *testing.T) {
	t.Parallel()
	for _, marked := range []bool{true, false} {
		w := newWorld(t, helloFile("hello"))
		if !marked {
			w.edit(func(e *v1alpha1.GitEvent) { e.CreationTimestamp = metav1.NewTime(w.clock.Now()) })
		}
		w.settle(corev1.ConditionTrue)
		if got := w.event().Status.LateSecrets; got != marked {
			t.Errorf("marked %v, want %v", got, marked)
		}
	}
}
