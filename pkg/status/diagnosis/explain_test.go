// SPDX-License-Identifier: Apache-2.0

package diagnosis

import "testing"

// podMessage is what Tekton v1.15.0 writes when a webhook on pods refuses connections and the
// TaskRun refers to a Task.
const podMessage = `failed to create task run pod "build-abc-build": Internal error occurred: failed calling webhook "pods.policy.example.com": failed to call webhook: Post "https://policy.policy.svc:443/pods?timeout=10s": dial tcp 10.96.0.9:443: connect: connection refused. Maybe missing or invalid Task ci/build`

func TestExplain(t *testing.T) {
	const pod, create = "PodCreationFailed", "CreateRunFailed"
	missing, there := Facts{TaskExists: map[string]bool{"build": false}},
		Facts{TaskExists: map[string]bool{"ci/build": true}}
	const blame = `The cluster could not create the task's pod: its admission webhook "pods.policy.example.com" at https://policy.policy.svc:443/pods?timeout=10s failed with: dial tcp 10.96.0.9:443: connect: connection refused. The cluster failed, not the change; run it again once the webhook answers.`
	cases := []struct {
		name, reason, message string
		facts                 Facts
		want                  string
	}{
		{"a webhook that refuses connections is named with its address and error, and the guess is left out", pod, podMessage,
			Facts{}, blame},
		{"the guess is left out if the Task exists", pod, podMessage, there, blame},
		{"the guess is repeated if the Task does not exist", pod, podMessage, missing,
			blame + " The Task ci/build does not exist (Maybe missing or invalid Task ci/build)."},
		{"an embedded spec is not guessed to be wrong", pod, `failed to create task run pod "x": Internal error occurred: failed calling webhook "w": failed to call webhook: Post "https://w.svc:443/?timeout=10s": context deadline exceeded. Maybe invalid TaskSpec`, Facts{},
			`The cluster could not create the task's pod: its admission webhook "w" at https://w.svc:443/?timeout=10s failed with: context deadline exceeded. The cluster failed, not the change; run it again once the webhook answers.`},
		{"a webhook that answered rubbish has no address", pod,
			`failed to create task run pod "x": Internal error occurred: failed calling webhook "w": received invalid webhook response: expected response.uid="1". Maybe invalid TaskSpec`, Facts{},
			`The cluster could not create the task's pod: its admission webhook "w" failed with: received invalid webhook response: expected response.uid="1". The cluster failed, not the change; run it again once the webhook answers.`},
		{"a webhook on TaskRuns is named as well", create, `Internal error occurred: failed calling webhook "webhook.pipeline.tekton.dev": failed to call webhook: Post "https://tekton-pipelines-webhook.tekton-pipelines.svc:443/defaulting?timeout=10s": no endpoints available for service "tekton-pipelines-webhook"`, Facts{},
			`The cluster could not create the task's TaskRun: its admission webhook "webhook.pipeline.tekton.dev" at https://tekton-pipelines-webhook.tekton-pipelines.svc:443/defaulting?timeout=10s failed with: no endpoints available for service "tekton-pipelines-webhook". The cluster failed, not the change; run it again once the webhook answers.`},
		{"a conversion webhook is named by what it converts", create,
			`conversion webhook for tekton.dev/v1beta1, Kind=CustomRun failed: Post "https://w.svc:443/resource-conversion?timeout=30s": EOF`, Facts{},
			`The cluster could not create the task's TaskRun: its conversion webhook for tekton.dev/v1beta1, Kind=CustomRun at https://w.svc:443/resource-conversion?timeout=30s failed with: EOF. The cluster failed, not the change; run it again once the webhook answers.`},
		{"a webhook that said no is a rule of the cluster", create,
			`admission webhook "policy.example.com" denied the request: no root`, Facts{},
			`The admission webhook "policy.example.com" refused the task's TaskRun: no root. This is a rule of the cluster; ask the cluster's administrators what it requires.`},
		{"Tekton's own webhook speaks of the text", create, `admission webhook "validation.webhook.pipeline.tekton.dev" denied the request: validation failed: missing field(s): spec.taskRef`, Facts{},
			`The admission webhook "validation.webhook.pipeline.tekton.dev" refused the task's TaskRun: validation failed: missing field(s): spec.taskRef.`},
		{"a webhook that says no in the words of an outage is not a rule", pod,
			`failed to create task run pod "x": admission webhook "w" denied the request: dial tcp 10.0.0.1:443: i/o timeout. Maybe invalid TaskSpec`, Facts{},
			`The admission webhook "w" refused the task's pod: dial tcp 10.0.0.1:443: i/o timeout. The webhook itself seems to have failed; run it again when the cluster is healthy.`},
		{"it may give no reason", pod, `failed to create task run pod "x": admission webhook "w" denied the request without explanation. Maybe invalid TaskSpec`, Facts{},
			`The admission webhook "w" refused the task's pod: it gave no reason. This is a rule of the cluster; ask the cluster's administrators what it requires.`},
		{"an API server in trouble is named", pod,
			`failed to create task run pod "x": etcdserver: request timed out. Maybe missing or invalid Task ci/build`, Facts{},
			"The cluster could not create the task's pod: etcdserver: request timed out. The cluster failed, not the change; run it again."},
		{"a namespace that goes away takes its runs with it", pod,
			`failed to create task run pod "x": pods "x-pod" is forbidden: unable to create new content in namespace ci because it is being terminated`, Facts{},
			"The cluster could not create the task's pod: namespace ci is being deleted, and this run with it. That is not about the change."},
		{"and so for a TaskRun", create, `error creating TaskRuns called [x]: taskruns.tekton.dev "x" is forbidden: unable to create new content in namespace ci because it is being terminated`, Facts{},
			"The cluster could not create the task's TaskRun: namespace ci is being deleted, and this run with it. That is not about the change."},
		{"a pod that is invalid needs no more words", pod, `failed to create task run pod "x": Pod "x" is invalid: spec.containers[0].name: Required value. Maybe missing or invalid Task ci/build`, Facts{}, ""},
		{"a Task that does not exist is said to be missing", pod,
			`failed to create task run pod "x": translating TaskSpec to Pod: no such thing. Maybe missing or invalid Task ci/build`, missing,
			"The Task ci/build does not exist (Maybe missing or invalid Task ci/build)."},
		{"a container that could not be made is no matter of webhooks", pod,
			`the step "unnamed-0" in TaskRun "x" failed to start. The pod errored with the message: "context deadline exceeded."`, Facts{}, ""},
		{"words that a step printed are not taken for the cluster's", "Failed",
			`failed calling webhook "w": failed to call webhook: Post "https://w": EOF`, Facts{}, ""},
		{"a success has no diagnosis", "Succeeded", "All Steps have completed executing", Facts{}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := Explain(c.reason, c.message, c.facts); got != c.want {
				t.Errorf("explain =\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
