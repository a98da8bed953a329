// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

// requestedEvent makes the event a request to /incoming for the pipeline hello.
func requestedEvent(t *testing.T, files ...git.File) *env {
	w := newEnv(t, files...)
	w.edit(func(e *v1alpha1.GitEvent) {
		e.Spec.EventType, e.Spec.Sender, e.Spec.SHA, e.Spec.Commit = v1alpha1.EventIncoming, v1alpha1.EventIncoming, "", nil
		e.Spec.Incoming = &v1alpha1.Incoming{Pipeline: "hello"}
		e.Spec.Project.ID, e.Spec.Project.OwnerID, e.Spec.InstallationID = 0, 0, 0
		e.Labels = map[string]string{plumbline.SubjectLabel: e.Spec.Subject()}
	})
	w.git.complete = func(e *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
		e.SHA = sha
		return e, nil
	}
	w.git.located = &v1alpha1.Located{Project: w.event().Spec.Project, InstallationID: 77}
	w.git.located.Project.ID = 5
	return w
}

// The project, its installation and the commit are found once, by the plan. Later processes use
// what the plan stores, and reports go to that commit.
func TestIncomingIsLocatedOnce(t *testing.T) {
	t.Parallel()
	w := requestedEvent(t, helloFile("hello"), helloFile("other"))
	w.settle(corev1.ConditionTrue)
	runs, e := w.runs(), w.event()
	if len(runs) != 1 || runs[0].Labels[pipelinesascode.EventType] != "incoming" ||
		runs[0].Annotations[pipelinesascode.InstallationID] != "77" {
		t.Fatalf("runs %+v, reasons %v", runs, w.reasons())
	}
	plan := e.Status.Plan
	if e.Spec.SHA != "" || e.Spec.InstallationID != 0 || plan.HeadSHA != sha || plan.Located == nil ||
		plan.Located.InstallationID != 77 || plan.Located.Project.ID != 5 || e.Status.Ref != "main" {
		t.Errorf("spec %+v, plan %+v, ref %q", e.Spec, plan, e.Status.Ref)
	}
	if w.git.locates != 1 || w.git.logins < 2 {
		t.Errorf("located %d times in %d logins", w.git.locates, w.git.logins)
	}
	for _, login := range w.git.loggedIn {
		if login.InstallationID != 77 {
			t.Errorf("logged in to installation %d", login.InstallationID)
		}
	}
	pushed := e.Spec
	pushed.SHA = sha
	if got := e.Labels[plumbline.SubjectLabel]; got != pushed.Subject() {
		t.Errorf("the subject is %q, want that of the commit: a re-run would not find the event", got)
	}
	if len(w.git.writes) == 0 {
		t.Error("nothing was reported")
	}
}

// Whatever call fails, or is the last before the process is killed, the request has one run at one
// commit.
func TestIncomingSurvivesAnyFailedCall(t *testing.T) {
	t.Parallel()
	atEveryCall(t, func(t *testing.T) *env {
		w := requestedEvent(t, helloFile("hello"))
		w.forgets, w.ends = true, corev1.ConditionTrue
		return w
	}, func(t *testing.T, w *env) {
		if w.event().Status.Runs[0].Refused != nil { // by the API server, which TestEventSurvivesAnyFailedCall checks
			w.wantRefused()
			return
		}
		w.wantSuccess()
		if got := w.runs()[0].Annotations[pipelinesascode.SHA]; got != sha {
			t.Errorf("a run of commit %s", got)
		}
	})
}
