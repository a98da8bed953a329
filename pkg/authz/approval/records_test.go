// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// A head was known when the API server stored its delivery, whatever the receiver's clock says.
func TestHeadsUseTimeOfStorage(t *testing.T) {
	t.Parallel()
	stored, happened := metav1.NewTime(time.Unix(100, 0)), metav1.NewTime(time.Unix(90, 0))
	e := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: stored}}
	e.Spec = v1alpha1.GitEventSpec{PullRequest: &v1alpha1.PullRequest{Number: 1}, SHA: "a", HappenedAt: &happened,
		ReceivedAt: metav1.NewTime(time.Unix(5000, 0))}
	if heads := Heads([]history.Record{{Event: e}}); len(heads) != 1 || !heads[0].Received.Equal(stored.Time) {
		t.Errorf("%+v, want one that was received at %v", heads, stored)
	}
}
