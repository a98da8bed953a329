// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"context"
	"fmt"
	"strings"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

// host is a repository on a Git service. A host that is no use any more is closed.
type host interface {
	kind() string
	// connect creates what the Repository names, and returns the Repository's spec.
	connect(ctx context.Context, s *stage) (pacv1alpha1.RepositorySpec, error)
	git
	outside
}

// outside is a Git service as the campaign watches and disturbs it.
type outside interface {
	seen() invariants.Service
	// inject arms a fault at one of routes, or at all: "".
	inject(f forge.Fault) *forge.FaultHandle
	routes() []string
	close() error
}

// git is what happens at a Git service.
type git interface {
	// push commits to a branch, by force if the change has another parent than the branch's head.
	push(branch string, change forge.Change) delivery
	// open opens a pull request, pull tells of one: opened, synchronize or closed, which closes it.
	open(branch string, change forge.Change) int
	pull(number int, action string) delivery
	// send returns the HTTP status, 0 if there was no answer.
	send(ctx context.Context, d delivery) int
	// root is the oldest commit of the default branch.
	root() string
}

// delivery is forge.Delivery or gitlab.Delivery.
type delivery interface{ ID() string }

// files are a commit's: so many PipelineRuns for pushes and pull requests. bad is one that no API server takes, long how many
// milliseconds the tasks run.
func files(content string, runs, long int) forge.Change {
	all := map[string]string{"content": content}
	for n := range max(1, runs) {
		all[fmt.Sprintf(".tekton/run-%d.yaml", n)] = pipeline(fmt.Sprintf("run-%d", n), (len(content)+n)%4 == 3, long)
	}
	for n := max(1, runs); n < maxRuns; n++ {
		all[fmt.Sprintf(".tekton/run-%d.yaml", n)] = "# nothing\n"
	}
	return forge.Change{Files: all, Message: content}
}

// maxRuns is the most PipelineRuns of one commit.
const maxRuns = 3

// pipeline is a PipelineRun that ends by itself.
func pipeline(name string, fails bool, long int) string {
	code := 0
	if fails {
		code = 1
	}
	return strings.NewReplacer("NAME", name, "EXIT", cluster.ExitCodeAnnotation+fmt.Sprintf(": %q", fmt.Sprint(code)),
		"LONG", cluster.DurationAnnotation+fmt.Sprintf(": %q", fmt.Sprint(long))).Replace(definition)
}

const definition = `apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: NAME
  annotations:
    pipelinesascode.tekton.dev/on-event: "[push, pull_request]"
    pipelinesascode.tekton.dev/on-target-branch: "[main, work-*]"
    EXIT
    LONG
spec:
  params:
    - name: revision
      value: "{{ revision }}"
  pipelineSpec:
    tasks:
      - name: build
        taskSpec:
          steps:
            - name: step
              image: busybox
              script: exit 0
`
