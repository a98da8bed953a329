// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/scratch"
)

// TestMain hides the settings of the person who runs the tests.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
		"KUBECONFIG": "/nowhere", "KUBERNETES_SERVICE_HOST": "", "COLUMNS": ""} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// answer is what a command has written to its two streams, and to both as a terminal shows it, and
// its exit code. event is the first line of a table, which out does not have.
type answer struct {
	out, said, shown, event string
	code                    int
}

// headline matches the line that says which event was planned.
var headline = regexp.MustCompile(`^(?:Pull request|Push of|Comment "|Label|Closing of|Merge queue|Request to) ?.*\n`)

func plumb(ctx context.Context, dir, in string, args ...string) answer {
	var out, said, shown bytes.Buffer
	code := Run(ctx, Process{Args: append([]string{"plumb"}, args...), Dir: dir, In: strings.NewReader(in),
		Out: io.MultiWriter(&out, &shown), Err: io.MultiWriter(&said, &shown), Version: devel})
	event := headline.FindString(out.String())
	return answer{out.String()[len(event):], said.String(), shown.String(), event, code}
}

// run is a pipeline of a name with annotations, each "name: value" without the prefix.
func run(name string, annotations ...string) string {
	text := "apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata:\n  name: " + name + "\n  annotations:\n"
	for _, annotation := range annotations {
		text += "    pipelinesascode.tekton.dev/" + annotation + "\n"
	}
	return text + "spec: {pipelineSpec: {tasks: [{name: t, taskSpec: {steps: [{name: s, image: busybox, script: 'echo {{ revision }}'}]}}]}}\n"
}

// topic is a repository with pipelines and a branch topic that changes a file of docs and a file
// that is not committed.
func topic(t *testing.T, more map[string]string) *scratch.Repo {
	t.Helper()
	files := map[string]string{
		".tekton/build.yaml": run("build", `on-event: "[push, pull_request]"`,
			`on-target-branch: "[main, release-*, refs/tags/v*]"`),
		".tekton/docs.yaml":   run("docs", "on-event: pull_request", "on-target-branch: main", `on-path-change: "docs/**"`),
		".tekton/ready.yaml":  run("ready", "on-event: pull_request", "on-target-branch: main", "on-label: ready"),
		".tekton/deploy.yaml": run("deploy", `on-comment: "^/deploy"`),
	}
	for name, text := range more {
		files[name] = text
	}
	repo := scratch.New(t, files)
	repo.Git("checkout", "--quiet", "-b", "topic")
	repo.Write(map[string]string{"docs/a.md": "a", "go.mod": "x"})
	repo.Commit("Write it down")
	repo.Write(map[string]string{"main.go": "x"})
	return repo
}
