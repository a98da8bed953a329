// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// A receiver's clock that is ahead does not make a commit learned later.
func TestLearnedAt(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for what, test := range map[string]struct{ received, want time.Time }{
		"in the second in which it was recorded": {
			created.Add(900 * time.Millisecond), created.Add(900 * time.Millisecond),
		},
		"long before, when nobody could record it": {created.Add(-time.Hour), created.Add(-time.Hour)},
		"by a clock that is an hour ahead":         {created.Add(time.Hour), created.Add(time.Second)},
	} {
		event := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}}
		event.Spec.ReceivedAt = metav1.NewTime(test.received)
		if got := LearnedAt(event); !got.Equal(test.want) {
			t.Errorf("%s: %v, want %v", what, got, test.want)
		}
	}
}
