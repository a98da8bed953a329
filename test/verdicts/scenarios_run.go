// SPDX-License-Identifier: Apache-2.0

package verdicts

import corev1 "k8s.io/api/core/v1"

func timeouts() []scenario {
	const noNode = "0/3 nodes are available: "
	running := stays(corev1.PodRunning, "step-test", runs())
	task := func(name string, do change) scenario { return scenario{name, shortTask, []act{{"unit", do, true}}} }
	run := func(name string, do change) scenario { return scenario{name, shortRun, []act{{"unit", do, true}}} }
	insufficient := unschedulable(
		noNode + "3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.",
	)
	return []scenario{
		task("task-timeout-running", running),
		task("task-timeout-insufficient", insufficient),
		task("task-timeout-tainted", unschedulable(noNode+
			"3 node(s) had untolerated taint {node.kubernetes.io/unreachable: }. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.")),
		task("task-timeout-selector", unschedulable(noNode+
			"3 node(s) didn't match Pod's node affinity/selector. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.")),
		task("task-timeout-claim", unschedulable(noNode+
			`persistentvolumeclaim "cache" not found. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.`)),
		task("task-timeout-creating", stays(corev1.PodPending, "step-test", waits("ContainerCreating", ""))),
		task("task-timeout-pulling", stays(corev1.PodPending, "step-test", waits(
			"ErrImagePull",
			`failed to pull and unpack image "registry.example.com/team/app:1": failed to resolve reference "registry.example.com/team/app:1": unexpected status from HEAD request to https://registry.example.com/v2/team/app/manifests/1: 503 Service Unavailable`,
		))),
		run("run-timeout-running", running),
		run("run-timeout-unschedulable", insufficient),
	}
}

// definitions are runs that Tekton refuses after admission.
func definitions() []scenario {
	const step = `steps: [{name: test, image: "registry.example.com/team/app:1", script: "true"}]`
	broken := func(name, spec string) scenario { return scenario{name: name, spec: spec} }
	return []scenario{
		broken("task-missing", `{pipelineSpec: {tasks: [{name: unit, taskRef: {name: absent}}]}}`),
		broken("pipeline-missing", `{pipelineRef: {name: absent}}`),
		broken(
			"pipeline-resolver-timeout",
			`{pipelineRef: {resolver: git, params: [{name: url, value: "https://git.example.com/x"}]}}`,
		),
		broken("task-resolver-timeout", `{pipelineSpec: {tasks: [{name: unit, taskRef: {resolver: git}}]}}`),
		broken("parameter-missing", `{pipelineRef: {name: needs-param}}`),
		broken("parameter-type", `{pipelineRef: {name: needs-param}, params: [{name: version, value: [a, b]}]}`),
		broken("workspace-missing", `{pipelineRef: {name: needs-workspace}}`),
		broken(
			"service-account-missing",
			`{taskRunTemplate: {serviceAccountName: absent}, pipelineSpec: {tasks: [{name: unit, taskSpec: {`+step+`}}]}}`,
		),
		broken("pod-security", `{pipelineSpec: {tasks: [{name: unit, taskSpec: {steps: [
  {name: test, image: "registry.example.com/team/app:1", script: "true", securityContext: {privileged: true}}]}}]}}`),
		broken("pod-invalid", `{taskRunTemplate: {podTemplate: {nodeSelector: {"not a label": "x"}}},
  pipelineSpec: {tasks: [{name: unit, taskSpec: {`+step+`}}]}}`),
		{"missing-result", `{pipelineSpec: {tasks: [
  {name: unit, taskSpec: {results: [{name: version}], ` + step + `}},
  {name: use, params: [{name: version, value: $(tasks.unit.results.version)}], taskSpec: {params: [{name: version}], ` + step + `}}]}}`,
			[]act{{"unit", succeeds(), false}}},
		{
			"missing-pipeline-result",
			`{pipelineSpec: {results: [{name: version, value: $(tasks.unit.results.version)}], tasks: [
  {name: unit, taskSpec: {results: [{name: version}], ` + step + `}}]}}`,
			[]act{{"unit", succeeds(), false}},
		},
	}
}

// needed are objects that scenarios refer to.
const needed = `
apiVersion: tekton.dev/v1
kind: Pipeline
metadata: {name: needs-param, namespace: %[1]s}
spec:
  params: [{name: version}]
  tasks: [{name: unit, taskSpec: {steps: [{name: test, image: "registry.example.com/team/app:1", script: "echo $(params.version)"}]}}]
---
apiVersion: tekton.dev/v1
kind: Pipeline
metadata: {name: needs-workspace, namespace: %[1]s}
spec:
  workspaces: [{name: source}]
  tasks: [{name: unit, workspaces: [{name: source}], taskSpec: {workspaces: [{name: source}], steps: [{name: test, image: "registry.example.com/team/app:1", script: "true"}]}}]
`
