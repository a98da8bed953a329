// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"context"
	"fmt"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

// service is a Git service as the campaign watches and disturbs it.
type service interface {
	seen() invariants.Service
	// Inject arms a fault at one of routes, or at all: "".
	Inject(f forge.Fault) *forge.FaultHandle
	routes() []string
	// found makes a project of an owner and returns its path, as the service's log names it.
	found(owner string) (project, string)
	Close() error
}

// project is one project of a Git service.
type project interface {
	// connect creates what the Repository names in its namespace, and returns the Repository's
	// spec.
	connect(ctx context.Context, i *installation.Installation, namespace string) (pacv1alpha1.RepositorySpec, error)
	// push commits to a branch, by force if the change has another parent than the branch's head.
	push(branch string, change forge.Change) delivery
	// send sends a delivery to a URL. It returns the HTTP status, 0 if there was no answer.
	send(ctx context.Context, url string, d delivery) int
	places
	pulls
}

// places says where a project's objects are.
type places interface {
	// root is the oldest commit of the default branch, and tip what a branch is at.
	root() string
	tip(branch string) string
	// checksAt are the paths of the projects in which checks of its commits may be.
	checksAt() []string
}

// pulls are the pull requests of a project.
type pulls interface {
	open(branch string, change forge.Change) int
	// openFork opens one of the outsider's, from its fork, and returns its head too; pushFork
	// pushes to the fork and returns the commit.
	openFork(branch string, change forge.Change) (number int, head string)
	pushFork(branch string, change forge.Change) (head string)
	// tell tells of one: opened, synchronize or closed, which closes it.
	tell(number int, action string) delivery
	// comment has a user write below one.
	comment(number int, user, body string) delivery
}

// delivery is forge.Delivery or gitlab.Delivery.
type delivery interface{ ID() string }

// files returns a commit's files: so many PipelineRuns for pushes, pull requests and comments.
// Some of them fail. long is how many milliseconds the tasks run.
func files(content string, runs, long int) forge.Change {
	all := map[string]string{"content": content}
	for n := range max(1, runs) {
		all[fmt.Sprintf(".tekton/run-%d.yaml", n)] = pipeline(fmt.Sprintf("run-%d", n), (len(content)+n)%4 == 3, long)
	}
	for n := max(1, runs); n < maxRuns; n++ {
		all[fmt.Sprintf(".tekton/run-%d.yaml", n)] = empty
	}
	return forge.Change{Files: all, Message: content}
}

// empty is a file without definitions.
const empty = "# nothing\n"

// defined returns how many PipelineRuns a change defines: each has all files.
func defined(change forge.Change) (n int) {
	for path, content := range change.Files {
		if strings.HasPrefix(path, ".tekton/") && content != empty {
			n++
		}
	}
	return n
}

// maxRuns is the most PipelineRuns of one commit.
const maxRuns = 3

// pipeline returns a PipelineRun that ends by itself.
func pipeline(name string, fails bool, long int) string {
	code := 0
	if fails {
		code = 1
	}
	return strings.NewReplacer("NAME", name, "KEEP", keeps(name), "CANCEL", cancels(name), "EXIT",
		cluster.ExitCodeAnnotation+fmt.Sprintf(": %q", fmt.Sprint(code)),
		"LONG", cluster.DurationAnnotation+fmt.Sprintf(": %q", fmt.Sprint(long))).Replace(definition)
}

// keeps returns the annotation that says how many ended runs of a pipeline are kept: all of the
// first one, two of the second and none of the third.
func keeps(name string) string {
	most := map[string]string{"run-1": "2", "run-2": "0"}[name]
	if most == "" {
		return ""
	}
	return pipelinesascode.MaxKeepRuns + fmt.Sprintf(": %q", most)
}

// cancels returns the annotation with which a newer run of the second pipeline cancels older ones.
// Some commits lack it: then the newest run may cancel none.
func cancels(name string) string {
	if name != "run-1" {
		return ""
	}
	return pipelinesascode.CancelInProgress + `: "true"`
}

const definition = `apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: NAME
  annotations:
    pipelinesascode.tekton.dev/on-event: "[push, pull_request]"
    pipelinesascode.tekton.dev/on-target-branch: "[main, work-*, pull-*]"
    pipelinesascode.tekton.dev/on-comment: "^/deploy"
    KEEP
    CANCEL
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
