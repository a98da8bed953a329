// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/planning"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// L4: what a web address of the Git service itself leads to is missing once the service did not
// show it three times, some seconds apart; until then nobody is told, and the other pipelines do
// not wait. What a replica that lags shows later runs.
func TestFileIsMissingAfterThreeReads(t *testing.T) {
	t.Parallel()
	for sentence, c := range map[string]struct {
		shown bool
		want  status.Conclusion
	}{
		"it is not there":         {false, status.Failure},
		"it is there a bit later": {true, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			h.fail = func(string) int { return 404 }
			w := newEnv(t, referring("at-the-service", "lint", h.URL+"/private/lint.yaml"), helloFile("plain"))
			w.useHub(h)
			w.git.hides = h.URL + "/private/"
			seen := &planning.NotFound{}
			read := func() {
				r := w.uncounted(w.reconciler)
				r.steps.Plan.NotFound = seen // it is the same process
				_ = r.Reconcile(t.Context(), system+"/push-1")
			}
			for range planning.NotFoundReads - 1 {
				read()
				read() // at once: it counts for nothing
				if got := w.conclusions()["at-the-service"]; got != "" || len(w.runs()) != 1 {
					t.Fatalf("%d runs, the check says %q: want the other pipeline's and no verdict", len(w.runs()), got)
				}
				w.advance(planning.NotFoundInterval)
			}
			if c.shown {
				w.git.hides = ""
				h.mu.Lock()
				h.fail = nil
				h.mu.Unlock()
			}
			read()
			if got := w.conclusions()["at-the-service"]; got != c.want {
				t.Errorf("the check says %q, want %q", got, c.want)
			}
			w.settle(corev1.ConditionTrue)
		})
	}
}
