// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"
)

var errQuota = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 403, Reason: metav1.StatusReasonForbidden,
	Message: `pipelineruns.tekton.dev "x" is forbidden: exceeded quota: runs, requested: count/pipelineruns.tekton.dev=1, used: count/pipelineruns.tekton.dev=5, limited: count/pipelineruns.tekton.dev=5`}}

// What a tenant's used-up quota refuses costs the API server and its webhooks as much as a create: two events with 50 runs
// each must not cost a hundred of them a minute.
func TestOneRunAsksForAllThatWaitForAQuota(t *testing.T) {
	t.Parallel()
	const minutes = 10
	w := newWorld(t, oneFile(50)...)
	w.add("push-2", busyHost)
	full, refused := true, 0
	w.asked = func(action clienttesting.Action) error {
		if full && action.Matches("create", "pipelineruns") {
			refused++
			return errQuota
		}
		return nil
	}
	q := newQueue(w)
	q.run(w.clock.Now().Add(minutes * time.Minute))
	if refused < minutes || refused > 2*minutes {
		t.Errorf("%d creates were refused in %d minutes, want one or two a minute", refused, minutes)
	}
	full = false
	q.run(w.clock.Now().Add(2 * time.Minute)) // C5
	if got := len(w.runs()); got != 100 {
		t.Errorf("two minutes after room was made there are %d PipelineRuns, want 100", got)
	}
}
