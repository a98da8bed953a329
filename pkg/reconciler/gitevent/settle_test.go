// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Each write has the current outcome of the event, and no write is made for that alone.
func TestEachWriteHasTheOutcome(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	var outcomes []string
	var before v1alpha1.GitEventStatus
	w.own.PrependReactor("update", "gitevents", func(action clienttesting.Action) (bool, k8sruntime.Object, error) {
		update, _ := action.(clienttesting.UpdateAction)
		if e, ok := update.GetObject().(*v1alpha1.GitEvent); ok {
			outcomes = append(outcomes, e.Status.Ref+" "+e.Status.Outcome)
			rest := *e.Status.DeepCopy()
			if rest.Outcome, rest.Ref = "", ""; equality.Semantic.DeepEqual(rest, before) {
				t.Errorf("a write for nothing but %q", e.Status.Outcome)
			}
			before = rest
		}
		return false, nil, nil
	})
	w.git.err = fault.Transientf(fault.ReasonGitUnavailable, "502")
	_, _ = w.reconcile()
	w.git.err = nil
	w.settle(corev1.ConditionFalse)
	want := []string{"main Waiting: GitServiceUnavailable", "main Creating", "main Running", "main Failed"}
	if got := slices.Compact(outcomes); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if e := w.event(); e.Status.Outcome != "Failed" || e.Status.Ref != "main" {
		t.Errorf("the settled event says %q of %q", e.Status.Outcome, e.Status.Ref)
	}
}

func TestWaitingPipelineNamesItsClauses(t *testing.T) {
	t.Parallel()
	w := newEnv(t, annotated("later", "task: https://git.example/t.yaml"))
	w.settings = map[string]string{"github-url": "https://git.example"}
	w.git.tree = map[string]string{"t.yaml": "apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: t}\nspec: {steps: [{name: s, image: busybox, script: x}]}\n"}
	w.git.errAt = fault.Transientf("Unavailable", "502")
	for range 2 {
		_, _ = w.reconcile()
		if got := w.reasons()["later"]; !strings.HasPrefix(got, "waiting: ") {
			t.Errorf("as long as it waits: %q", got)
		}
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
	}
	w.git.errAt = nil
	w.settle(corev1.ConditionTrue)
	decision := w.event().Status.Plan.Decisions[0]
	if want := "selected: on-event includes push; on-target-branch [main] matches main"; decision.Reason != want ||
		decision.Selected != "" {
		t.Errorf("%+v, want %q", decision, want)
	}
}
