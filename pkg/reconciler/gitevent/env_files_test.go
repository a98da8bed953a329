// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/git"
)

// helloFile is a pipeline for pushes to main.
func helloFile(name string) git.File {
	return git.File{Path: ".tekton/" + name + ".yaml", Data: []byte(`apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: ` + name + `
  annotations:
    pipelinesascode.tekton.dev/on-event: "[push]"
    pipelinesascode.tekton.dev/on-target-branch: "[main]"
spec:
  pipelineSpec:
    tasks:
      - name: build
        taskSpec:
          steps: [{name: s, image: busybox, script: "true"}]
`)}
}

// pullFile is a pipeline for pull requests to main.
func pullFile(name string) git.File {
	file := helloFile(name)
	file.Data = []byte(strings.Replace(string(file.Data), "[push]", "[pull_request]", 1))
	return file
}
