// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/fairqueue"
	"github.com/plumbline-ci/plumbline/pkg/store/gitevents"
)

// A fresh event asks for its turn with what the cache has of it, so that nothing is read for one
// that waits.
func TestTheCacheKnowsWhereAnEventWaits(t *testing.T) {
	t.Parallel()
	event := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: "pull-request-1"}, Spec: v1alpha1.GitEventSpec{
		Trigger: v1alpha1.TriggerPullRequest, Host: "github.com", InstallationID: 7,
		Repository: v1alpha1.RepositoryReference{Namespace: "team", Name: "app"},
	}}
	want := fairqueue.Visit{Event: "pull-request-1", Namespace: "team", Host: "github.com", Installation: 7, PullsOf: "app"}
	for what, e := range map[string]*v1alpha1.GitEvent{"the event": event, "what the cache has": gitevents.Trim(event)} {
		if diff := cmp.Diff(want, credentials.VisitOf(e)); diff != "" {
			t.Errorf("the visit of %s (-want +got):\n%s", what, diff)
		}
	}
}
