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
// the words.
type refused struct {
	name  string
	file  string
	words func(env *environment, run string) string
}

const policyMessage = "PipelineRuns of this team need an owner"

func refusals() []refused {
	return []refused{
		{
			"denied-by-webhook",
			strings.Replace(pipeline("denied-by-webhook", "push"), "      - name: build\n",
				"      - name: build\n        runAfter: [nothing-of-that-name]\n", 1),
			func(*environment, string) string {
				return `admission webhook "validation.webhook.pipeline.tekton.dev" denied the request: validation failed: invalid value: couldn't add link between build and nothing-of-that-name: task build depends on nothing-of-that-name but nothing-of-that-name wasn't present in Pipeline: spec.pipelineSpec.tasks`
			},
		},
		{
			"not-valid",
			strings.Replace(pipeline("not-valid", "push"), "  annotations:\n",
				"  labels:\n    team: not a label\n  annotations:\n", 1),
			func(_ *environment, run string) string {
				return `PipelineRun.tekton.dev "` + run + `" is invalid: metadata.labels: Invalid value: "not a label": `
			},
		},
		{
			"denied-by-policy",
			pipeline("denied-by-policy", "push"),
			func(env *environment, run string) string {
				return `pipelineruns.tekton.dev "` + run + `" is forbidden: ` + env.policyDenial(policy{message: policyMessage})
			},
		},
	}
}

// C4: a PipelineRun that Tekton's webhook, the API server's validation or a policy refuses at
// creation gets a failed check with their exact words within 30 s. It is not retried by itself,
// and pushing a fix works.
func TestRefusedPipelineRunFailsCheck(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1, proxied: true}, refusedPipelineRunFails)
}

func refusedPipelineRunFails(t *testing.T, env *environment) {
	env.enforcePolicy(policy{
		operation: "CREATE", condition: env.controllerCondition(), message: policyMessage,
		expression: `!object.metadata.name.startsWith("denied-by-policy")`,
	}, env.probeCreate("denied-by-policy-probe"))
	for _, r := range refusals() {
		sha, delivery := env.push(map[string]string{".tekton/run.yaml": r.file})
		env.deliver(delivery, http.StatusAccepted)
		check := env.awaitCheck(sha, checkName(r.name), "failure", ruleLimit())
		event := env.awaitEvent(sha, "the event has one run", func(event *v1alpha1.GitEvent) error {
			if n := len(event.Status.Runs); n != 1 {
				return fmt.Errorf("it has %d", n)
			}
			return nil
		})
		run := event.Status.Runs[0].Name
		if words := r.words(env, run); !check.Tells(words) {
			t.Errorf("%s: the failed check's text lacks the words %q: %s", r.name, words, check.Text)
		}
		env.awaitSettled(sha, soon) // nothing is left to do, so nothing is retried
		env.requireOneCheck(sha, checkName(r.name))
		env.requireOneRefusedCreate(r.name, run)
	}
	sha, delivery := env.push(map[string]string{".tekton/run.yaml": pipeline("fixed", "push")})
	env.deliver(delivery, http.StatusAccepted)
	env.awaitCheck(sha, checkName("fixed"), "success", soon)
	env.requireNoFailure(sha)
	env.awaitSettled(sha, soon)
	env.restart(env.controller()) // a new process reads every unsettled event again
	again, delivery := env.push(map[string]string{".tekton/run.yaml": pipeline("again", "push")})
	env.deliver(delivery, http.StatusAccepted)
	env.awaitCheck(again, checkName("again"), "success", afterFault)
	for _, r := range refusals() {
		env.requireOneRefusedCreate(r.name, "")
	}
}

// requireOneRefusedCreate requires that one create was sent for a pipeline, and that it was
// refused.
func (env *environment) requireOneRefusedCreate(pipeline, run string) {
	env.t.Helper()
	creates := env.runCalls("create", pipeline)
	if len(creates) != 1 || creates[0].Status/100 != 4 || run != "" && creates[0].Name != run {
		env.t.Errorf("creates %+v, want one, refused with a 4xx", creates)
	}
	for _, live := range env.runs() {
		if strings.HasPrefix(live.Name, pipeline) {
			env.t.Errorf("PipelineRun %s exists although it was refused", live.Name)
		}
	}
}
