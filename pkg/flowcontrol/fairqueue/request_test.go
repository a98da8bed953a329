// SPDX-License-Identifier: Apache-2.0

package fairqueue_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/fairqueue"
	"github.com/plumbline-ci/plumbline/pkg/store/gitevents"
)

// A fresh event is queued with its cached object, so that a waiting event causes no reads.
func TestRequestOfNeedsOnlyWhatTheCacheHas(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	event := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: "pull-request-1"}, Spec: v1alpha1.GitEventSpec{
		Trigger: v1alpha1.TriggerPullRequest, Host: "github.com", InstallationID: 7,
		Repository: v1alpha1.RepositoryReference{Namespace: "team", Name: "app"},
	}}
	want := fairqueue.Request{
		Event: "pull-request-1", Namespace: "team", Host: "github.com", Installation: 7, PullsOf: "app",
	}
	for what, e := range map[string]*v1alpha1.GitEvent{"the event": event, "what the cache has": gitevents.Trim(event)} {
		if diff := cmp.Diff(want, fairqueue.RequestOf(e, now)); diff != "" {
			t.Errorf("the request of %s (-want +got):\n%s", what, diff)
		}
	}
}

func TestRequestRenewsWhenTheTokenOfARunIsDue(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(d)} }
	for name, test := range map[string]struct {
		run  v1alpha1.Run
		want bool
	}{
		"due":              {v1alpha1.Run{Secret: "s", SecretRenewAt: at(0)}, true},
		"not yet":          {v1alpha1.Run{Secret: "s", SecretRenewAt: at(time.Second)}, false},
		"the run finished": {v1alpha1.Run{Secret: "s", SecretRenewAt: at(0), Result: &v1alpha1.Result{}}, false},
		"no secret":        {v1alpha1.Run{SecretRenewAt: at(0)}, false},
		"no token yet":     {v1alpha1.Run{Secret: "s"}, false},
	} {
		event := &v1alpha1.GitEvent{Status: v1alpha1.GitEventStatus{Runs: []v1alpha1.Run{{}, test.run}}}
		if got := fairqueue.RequestOf(event, now).Renews; got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
