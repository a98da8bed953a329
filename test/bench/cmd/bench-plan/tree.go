// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// task is what every PipelineRun refers to.
const task = `apiVersion: tekton.dev/v1
kind: Task
metadata:
  name: build
spec:
  params:
    - name: revision
  steps:
    - name: build
      image: busybox
      script: echo building $(params.revision)
`

// pipelines is a .tekton with so many PipelineRuns, each for one service of the repository.
func pipelines(runs int) map[string]string {
	files := map[string]string{"tasks/build.yaml": task}
	for i := range runs {
		files[fmt.Sprintf(".tekton/service-%03d.yaml", i)] = fmt.Sprintf(`apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  generateName: service-%03[1]d-
  annotations:
    pipelinesascode.tekton.dev/on-event: "[push]"
    pipelinesascode.tekton.dev/on-target-branch: "[main]"
    pipelinesascode.tekton.dev/on-path-change: "[services/%03[1]d/**, go.mod]"
    pipelinesascode.tekton.dev/task: "tasks/build.yaml"
spec:
  params:
    - name: url
      value: "{{ repo_url }}"
    - name: branch
      value: "{{ source_branch }}"
    - name: revision
      value: "{{ revision }}"
  pipelineSpec:
    params:
      - name: revision
    tasks:
      - name: build
        taskRef:
          name: build
        params:
          - name: revision
            value: $(params.revision)
`, i)
	}
	return files
}

// services is a change to each of them.
func services(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("services/%03d/main.go", i)] = "package main\n"
	}
	return files
}
