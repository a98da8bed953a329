// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/test/forge"
)

// pends makes the PipelineRun of a definition pending, as Kueue would.
func pends(definition string) string {
	return strings.Replace(definition, "\nspec:\n", "\nspec:\n  status: PipelineRunPending\n", 1)
}

// F13, as docs/adr/0041 has it: a run that something else keeps pending has its slot, its check is
// queued, and nobody but who keeps it lets it go. When it is let go it runs; another one, that is
// still kept, is ended by a command. F11: what waits for the slot is cancelled when its pull
// request is closed.
func TestARunThatIsHeldPendingKeepsItsSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	w.git.grant("dev", "write")
	w.limits(w.ci, "app", 1)
	s := w.watchesRuns()
	first := w.pushed(map[string]string{".tekton/push.yaml": pends(pipeline("first", "push"))})
	event := w.created(first)
	second := w.git.commit("topic", forge.Change{Author: "dev", Message: "topic", Files: map[string]string{".tekton/pr.yaml": pends(pipeline("second", "pull_request"))}})
	number := w.git.open("", "topic", "dev")
	w.deliver(w.opened(number), http.StatusAccepted)
	w.queue(1, 1)
	if check := w.checkReaches(first, checkName("first"), "queued", soon); !check.Tells("has been queued") {
		t.Errorf("the check of the run that is held says %q: %s", check.Title, check.Text)
	}
	w.checkReaches(second, checkName("second"), "queued", soon)
	closed, waits := w.topic("closed")
	w.deliver(w.opened(closed), http.StatusAccepted)
	w.queue(1, 2)
	w.deliver(w.closes(closed, false), http.StatusAccepted)
	if check := w.checkReaches(waits, checkName("pr"), "cancelled", soon); !check.Tells("closed") {
		t.Errorf("the check does not say why: %s", check.Text)
	}
	w.queue(1, 1)
	name := runOf(event, "first")
	if run := w.run(name); !run.IsPending() || len(w.runs()) != 1 {
		t.Errorf("%s is told %q, and there are %d runs", name, run.Spec.Status, len(w.runs()))
	}
	_, err := w.Tekton.TektonV1().PipelineRuns(w.ci).Patch(w.ctx, name, types.MergePatchType, []byte(`{"spec":{"status":null}}`), metav1.PatchOptions{})
	w.must(err)
	w.checkReaches(first, checkName("first"), "success", soon)
	held := w.run(runOf(w.created(second), "second"))
	w.queue(1, 0)
	if !held.IsPending() {
		t.Errorf("%s is told %q", held.Name, held.Spec.Status)
	}
	w.deliver(w.commands(number, "dev", "/cancel"), http.StatusAccepted)
	if check := w.checkReaches(second, checkName("second"), "cancelled", soon); !check.Tells("dev requested it") {
		t.Errorf("the check does not say why: %s", check.Text)
	}
	w.settled(afterFault)
	w.queue(0, 0)
	if most, _, _ := s.look(); most > 1 {
		t.Errorf("%d ran at once, at most 1 may", most)
	}
	w.invariants()
}
