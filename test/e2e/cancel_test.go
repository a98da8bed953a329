// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// S26: /cancel ends the runs that it names, or all, of its own pull request and that happened
// before it was written. A stranger's ends nothing. The author's ends its own, also when the author
// may not write (any more).
func TestACommentCancels(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) {
		w.git.grant("dev", "write")
		number, sha := w.topic("topic")
		other, its := w.topic("other")
		w.deliver(w.opened(number), http.StatusAccepted)
		w.deliver(w.opened(other), http.StatusAccepted)
		labelled := w.labels(number, "dev", "ready")
		w.deliver(labelled, http.StatusAccepted)
		for _, running := range [][2]string{{sha, "pr"}, {sha, "label"}, {its, "pr"}} {
			w.checkReaches(running[0], checkName(running[1]), "in_progress", soon)
		}
		if said := w.commanded(number, "stranger", "/cancel"); said.Status.Disposition != v1alpha1.DispositionIgnored {
			t.Errorf("a stranger's command is %s", said.Status.Disposition)
		}
		if said := w.commanded(number, "dev", "/cancel label unknown"); said.Status.Disposition != v1alpha1.DispositionCancels {
			t.Errorf("the command is %s: %+v", said.Status.Disposition, said.Status.Plan)
		}
		if check := w.checkReaches(sha, checkName("label"), "cancelled", soon); !check.Tells("dev requested it") {
			t.Errorf("the check does not say who asked: %s", check.Text)
		}
		for _, running := range [][2]string{{sha, "pr"}, {its, "pr"}} {
			if check, _ := w.current(running[0], checkName(running[1])); check.Status != "in_progress" {
				t.Errorf("the run of %s, which nobody cancelled, is %s %s", running[1], check.Status, check.Conclusion)
			}
		}
		w.git.grant("dev", "read")
		if said := w.commanded(number, "dev", "/test label"); said.Status.Disposition != v1alpha1.DispositionIgnored || said.Status.Plan.Reason != "NotApproved" {
			t.Errorf("a command of the author, who may not write, is %s: %+v", said.Status.Disposition, said.Status.Plan)
		}
		w.commanded(number, "dev", "please stop\n\n/cancel")
		w.checkReaches(sha, checkName("pr"), "cancelled", soon)
		w.release(w.created(its))
		w.checkReaches(its, checkName("pr"), "success", soon)
		w.settled(soon)
		w.neverFailed(sha)
		var told []string
		for _, run := range w.runs() {
			if run.Spec.Status == pipelinev1.PipelineRunSpecStatusCancelledRunFinally {
				told = append(told, run.Name+" "+run.Labels[pipelinesascode.SHA]+" "+run.Labels[pipelinesascode.EventType])
			}
		}
		if len(told) != 2 {
			t.Errorf("%q were told to end, want two of %s", told, sha)
		}
	})
}
