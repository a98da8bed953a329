// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// The application has another name when a run ends than when it began: its commit shows one status, which has ended.
func TestAStatusEndsUnderTheNameItWasBegunUnder(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	event := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: "push-1"}, Status: v1alpha1.GitEventStatus{
		Disposition: v1alpha1.DispositionRuns, Plan: &v1alpha1.Plan{},
		Runs: []v1alpha1.Run{{Pipeline: "build", Namespace: "ci", Name: "build-1", UID: "1"}},
	}}
	show := func(application string) string {
		checks := status.Desired(status.Input{Application: application, Event: event, Runs: []status.RunState{{Run: event.Status.Runs[0]}}})
		id := b.put(t, "", checks[0])
		event.Status.Checks = []v1alpha1.Check{{Key: checks[0].Key, Name: checks[0].Name, ID: id}}
		return b.states(testProject)
	}
	if got := show("Old CI"); got != "running" {
		t.Fatalf("it shows %s", got)
	}
	event.Status.Runs[0].Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeSucceeded}
	if got := show("New CI"); got != "success" {
		t.Errorf("it shows %s, want one status that has ended", got)
	}
	if got := b.StatusesFor(testProject, b.head.SHA)[0].Name; got != "Old CI / build" {
		t.Errorf("the status is called %q", got)
	}
}
