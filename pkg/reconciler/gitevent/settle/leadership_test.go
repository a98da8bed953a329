// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Another process may have worked on an event that existed before this process led, and may have
// been paused right before it created a secret: the sweep must look for it.
func TestInheritedReportsEventsOfAnotherLeader(t *testing.T) {
	t.Parallel()
	created := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for name, c := range map[string]struct {
		promoted time.Duration // after the event was created
		marked   bool
	}{
		"the lease was taken over while the event was open":         {time.Minute, true},
		"it was taken over before, as far as clocks can be trusted": {-clockSkew + time.Second, true},
		"the event came long after":                                 {-clockSkew, false},
	} {
		var leads Leadership
		leads.Start(created.Add(c.promoted))
		e := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: created}}
		if got := leads.Inherited(e); got != c.marked {
			t.Errorf("%s: marked %v, want %v", name, got, c.marked)
		}
	}
}
