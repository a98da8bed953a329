// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// refused is a PipelineRun that is refused at creation: who refuses it, what the author wrote, and
// with which words.
type refused struct {
	name  string
	file  string
	words func(w *world, run string) string
}

const policyMessage = "PipelineRuns of this team need an owner"

func refusals() []refused {
	return []refused{
		{
			"denied-by-webhook",
			strings.Replace(pipeline("denied-by-webhook", "push"), "      - name: build\n", "      - name: build\n        runAfter: [nothing-of-that-name]\n", 1),
			func(*world, string) string {
				return `admission webhook "validation.webhook.pipeline.tekton.dev" denied the request: validation failed: invalid value: couldn't add link between build and nothing-of-that-name: task build depends on nothing-of-that-name but nothing-of-that-name wasn't present in Pipeline: spec.pipelineSpec.tasks`
			},
		},
		{
			"not-valid",
			strings.Replace(pipeline("not-valid", "push"), "  annotations:\n", "  labels:\n    team: not a label\n  annotations:\n", 1),
			func(_ *world, run string) string {
				return `PipelineRun.tekton.dev "` + run + `" is invalid: metadata.labels: Invalid value: "not a label": `
			},
		},
		{
			"denied-by-policy",
			pipeline("denied-by-policy", "push"),
			func(w *world, run string) string {
				return `pipelineruns.tekton.dev "` + run + `" is forbidden: ` + w.denial(policy{message: policyMessage})
			},
		},
	}
}

// C4, and the last criterion of the original report: a PipelineRun that Tekton's webhook, the API
// server's validation or a policy refuses at creation gets a failed check with their words verbatim
// within 30 s; it is not tried again by itself, and pushing a fix works.
func TestARefusedPipelineRunFailsItsCheck(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1, proxied: true}, aRefusedPipelineRunFails)
}

func aRefusedPipelineRunFails(t *testing.T, w *world) {
	w.enforce(policy{
		operation: "CREATE", condition: w.byController(), message: policyMessage,
		expression: `!object.metadata.name.startsWith("denied-by-policy")`,
	}, w.probeCreate("denied-by-policy-probe"))
	for _, r := range refusals() {
		sha, delivery := w.push(map[string]string{".tekton/run.yaml": r.file})
		w.deliver(delivery, http.StatusAccepted)
		check := w.checkReaches(sha, checkName(r.name), "failure", ruleLimit())
		event := w.eventOf(sha, "the event has one run", func(event *v1alpha1.GitEvent) error {
			if n := len(event.Status.Runs); n != 1 {
				return fmt.Errorf("it has %d", n)
			}
			return nil
		})
		run := event.Status.Runs[0].Name
		if words := r.words(w, run); !check.Tells(words) {
			t.Errorf("%s: the failed check's text lacks the words %q: %s", r.name, words, check.Text)
		}
		w.settles(sha, soon) // nothing is left to do: nothing will try again
		w.oneCheck(sha, checkName(r.name))
		w.createdOnce(r.name, run)
	}
	sha, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("fixed", "push")})
	w.deliver(delivery, http.StatusAccepted)
	w.checkReaches(sha, checkName("fixed"), "success", soon)
	w.neverFailed(sha)
	w.settles(sha, soon)
	w.restart(w.controller()) // a new process looks again at whatever is open
	again, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("again", "push")})
	w.deliver(delivery, http.StatusAccepted)
	w.checkReaches(again, checkName("again"), "success", afterFault)
	for _, r := range refusals() {
		w.createdOnce(r.name, "")
	}
}

// createdOnce requires that one create was sent for a pipeline, and that it was refused.
func (w *world) createdOnce(pipeline, run string) {
	w.t.Helper()
	creates := w.calls("create", pipeline)
	if len(creates) != 1 || creates[0].Status/100 != 4 || run != "" && creates[0].Name != run {
		w.t.Errorf("creates %+v, want one, refused with a 4xx", creates)
	}
	for _, live := range w.runs() {
		if strings.HasPrefix(live.Name, pipeline) {
			w.t.Errorf("PipelineRun %s exists although it was refused", live.Name)
		}
	}
}
