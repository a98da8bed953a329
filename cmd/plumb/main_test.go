// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/scratch"
)

// The program itself: what a release sets, its exit codes, its streams, and its name as a plugin of
// kubectl.
func TestBinary(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "kubectl-plumb")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-X main.version=v1.2.3", "-o", binary, ".")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, said)
	}
	repo := scratch.New(t,
		map[string]string{".tekton/a.yaml": "apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata:\n  name: a\n" +
			"  annotations: {pipelinesascode.tekton.dev/on-event: push, pipelinesascode.tekton.dev/on-target-branch: main}\n" +
			"spec: {pipelineSpec: {tasks: [{name: t, taskSpec: {steps: [{name: s, image: busybox}]}}]}}\n"})
	for name, test := range map[string]struct {
		args      []string
		code      int
		out, said string
	}{
		"version":   {[]string{"version"}, 0, "plumb v1.2.3 (go", ""},
		"--version": {[]string{"--version"}, 0, "plumb v1.2.3 (go", ""},
		"help":      {[]string{"plan", "--help"}, 0, "kubectl plumb plan", ""},
		"a plan":    {[]string{"plan", "--push"}, 0, "a         yes     on-event includes push", ""},
		"a PipelineRun": {[]string{"plan", "--push", "-o=yaml"}, 0, "app.kubernetes.io/version: v1.2.3",
			"Assumed: the branch has no open pull request."},
		"what must start":  {[]string{"plan", "--push", "--must-start=b"}, 1, "a         yes", "plumb: b would not start"},
		"a tool's mistake": {[]string{"plan", "--tag="}, 2, "", "plumb: --tag has no value"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, said strings.Builder
			command := exec.CommandContext(t.Context(), binary, test.args...) // #nosec G204 -- it was just built
			command.Dir, command.Stdout, command.Stderr = repo.Dir, &out, &said
			command.Env = append(os.Environ(), "KUBECONFIG=/nowhere")
			err := command.Run()
			var exit *exec.ExitError
			code := 0
			if errors.As(err, &exit) {
				code = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if code != test.code || !strings.Contains(out.String(), test.out) || !strings.Contains(said.String(), test.said) ||
				test.out == "" && out.String() != "" || test.said == "" && said.String() != "" {
				t.Errorf("exit %d, standard output:\n%sstandard error:\n%s\nwant exit %d, %q and %q", code, out.String(),
					said.String(), test.code, test.out, test.said)
			}
		})
	}
}
