// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"
)

var errQuota = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 403,
	Reason:  metav1.StatusReasonForbidden,
	Message: `pipelineruns.tekton.dev "x" is forbidden: exceeded quota: runs, requested: count/pipelineruns.tekton.dev=1, used: count/pipelineruns.tekton.dev=5, limited: count/pipelineruns.tekton.dev=5`}}

// A creation that a tenant's exhausted quota refuses costs the API server and its webhooks as much
// as another one: two events with 50 runs each must not cost a hundred of them a minute.
func TestOneRunTriesAFullNamespace(t *testing.T) {
	t.Parallel()
	const minutes = 10
	w := newEnv(t, oneFile(50)...)
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

// Thousands of events may wait for a quota, and a Git service answers an installation some eighty
// times a minute. It is asked for the newest commit only for a run that is tried. Nor does each
// check of each event write its status.
func TestRunInAFullNamespaceMakesNoGitCalls(t *testing.T) {
	t.Parallel()
	const minutes, events = 10, 20
	w := newEnv(t, helloFile("hello"))
	for n := range events - 1 {
		w.add(fmt.Sprint("push-", n+2), busyHost)
	}
	w.asked = func(action clienttesting.Action) error {
		if action.Matches("create", "pipelineruns") {
			return errQuota
		}
		return nil
	}
	q := newQueue(w)
	q.run(w.clock.Now().Add(2 * time.Minute))
	asked, written := len(w.git.newerFor), w.count("update gitevents/status")
	q.run(w.clock.Now().Add(minutes * time.Minute))
	if n := len(w.git.newerFor) - asked; n > 2*minutes {
		t.Errorf("Git is asked %d times in %d minutes, want once or twice a minute", n, minutes)
	}
	if n := w.count("update gitevents/status") - written; n > 3*events {
		t.Errorf("%d statuses are written in %d minutes, want each event's every five", n, minutes)
	}
}
