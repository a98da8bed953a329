// SPDX-License-Identifier: Apache-2.0

package rerun_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/plan/rerun"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

const sha = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// recorded is an event of a push to a branch, which has started runs.
func recorded(name, branch string, runs ...v1alpha1.Run) history.Record {
	e := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: name}}
	e.Spec = v1alpha1.GitEventSpec{
		Trigger: v1alpha1.TriggerPush, EventType: "push", SHA: sha, BaseRef: "refs/heads/" + branch,
	}
	e.Status.Plan, e.Status.Runs = &v1alpha1.Plan{HeadSHA: sha}, runs
	return history.Record{Event: e}
}

func ran(pipeline string, outcome v1alpha1.Outcome) v1alpha1.Run {
	return v1alpha1.Run{Pipeline: pipeline, Name: pipeline + "-run", UID: "u", Result: &v1alpha1.Result{Outcome: outcome}}
}

// A pipeline whose newest run is unfinished or succeeded is not started; every other one is.
func TestHistoryWhySkipped(t *testing.T) {
	t.Parallel()
	running := v1alpha1.Run{Pipeline: "running", Name: "running-run", UID: "u"}
	other := recorded("push-0", "main", ran("elsewhere", v1alpha1.OutcomeSucceeded))
	other.Event.Spec.SHA, other.Event.Status.Plan.HeadSHA = strings.Repeat("b", 40), strings.Repeat("b", 40)
	h := rerun.NewHistory(sha, []history.Record{
		other,
		recorded("push-1", "main", ran("fixed", v1alpha1.OutcomeFailed), ran("broken", v1alpha1.OutcomeSucceeded), running),
		recorded("push-2", "main", ran("fixed", v1alpha1.OutcomeSucceeded), ran("broken", v1alpha1.OutcomeFailed),
			ran("running", v1alpha1.OutcomeFailed)),
		recorded("push-3", "main", ran("fixed", v1alpha1.OutcomeSkipped), ran("running", v1alpha1.OutcomeSkipped)),
	})
	for pipeline, want := range map[string]string{"fixed": "succeeded", "running": "is not finished", "broken": "",
		"new": "", "elsewhere": ""} {
		if why := h.WhySkipped(pipeline); !strings.Contains(why, want) || (why == "") != (want == "") {
			t.Errorf("%s is left alone because %q, want %q", pipeline, why, want)
		}
	}
	unplanned := recorded("push-4", "main")
	unplanned.Event.Status.Plan = nil
	if why := rerun.NewHistory(sha, []history.Record{unplanned}).WhySkipped("new"); !strings.Contains(why,
		"as soon as it is planned") {
		t.Errorf("what the commit's own event is about to start is left alone because %q", why)
	}
}
