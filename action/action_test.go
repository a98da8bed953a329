// SPDX-License-Identifier: Apache-2.0

// Package action_test runs the scripts of the GitHub Action and of the pre-commit hook.
package action_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// run runs a script in a directory with environment variables, and returns what it says.
func run(t *testing.T, dir, script string, env []string, args ...string) (out string, code int) {
	t.Helper()
	path, err := filepath.Abs(script)
	must(t, err)
	command := exec.CommandContext(t.Context(), path, args...)
	command.Dir = dir
	command.Env = append(os.Environ(), append([]string{"GIT_CONFIG_GLOBAL=/dev/null", "GITHUB_EVENT_NAME="}, env...)...)
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	err = command.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return said.String(), command.ProcessState.ExitCode()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// echo is a plumb that prints each argument in angle brackets.
const echo = "#!/bin/sh\nprintf '<%s>' \"$@\"\n"

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o750))
	must(t, os.WriteFile(path, []byte(text), 0o700)) // #nosec G306 -- some are programs
}

// repository makes a Git repository on branch topic with one pipeline, and returns its directory.
func repository(t *testing.T, annotation string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".tekton", "build.yaml"), `apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: build
  annotations:
    pipelinesascode.tekton.dev/on-event: pull_request
    pipelinesascode.tekton.dev/`+annotation+`: main
spec: {pipelineSpec: {tasks: [{name: t, taskSpec: {steps: [{name: s, image: busybox}]}}]}}
`)
	for _, args := range []string{"init -q -b main", "remote add origin https://github.com/acme/app",
		"-c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x", "checkout -q -b topic"} {
		git := exec.CommandContext(t.Context(), "git", strings.Fields(args)...)
		git.Dir, git.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
		if said, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %s", args, said)
		}
	}
	return dir
}

// The files are read by GitHub and pre-commit.
func TestMetadataNamesScriptsAndInputsThatExist(t *testing.T) {
	var action struct {
		Inputs map[string]struct{ Description, Default string }
		Runs   struct {
			Using string
			Steps []struct {
				Shell, Run string
				Env        map[string]string
			}
		}
	}
	var hooks []struct{ ID, Language, Entry, Files string }
	for name, into := range map[string]any{"action.yml": &action, ".pre-commit-hooks.yaml": &hooks} {
		data, err := os.ReadFile(filepath.Join("..", name))
		must(t, err)
		must(t, yaml.Unmarshal(data, into))
	}
	script, err := os.ReadFile("plan.sh")
	must(t, err)
	if action.Runs.Using != "composite" || len(action.Runs.Steps) != 1 {
		t.Fatalf("%+v", action.Runs)
	}
	step, expressions := action.Runs.Steps[0], ""
	for name, value := range step.Env {
		if name != "PLUMB_VERSION" && !strings.Contains(string(script), name) {
			t.Errorf("plan.sh does not read %s", name)
		}
		expressions += value
	}
	if strings.Contains(step.Run, "${{") { // an input would run as a script
		t.Errorf("the script has an expression: %s", step.Run)
	}
	for name, input := range action.Inputs {
		if input.Description == "" || name != "working-directory" && !strings.Contains(expressions, "inputs."+name+" ") {
			t.Errorf("input %s has no description, or no effect", name)
		}
	}
	if len(hooks) != 1 || hooks[0].ID != "plumb-plan" || hooks[0].Language != "script" {
		t.Fatalf("%+v", hooks)
	}
	for _, path := range []string{hooks[0].Entry, "action/plan.sh", "action/plumb.sh"} {
		if info, err := os.Stat(filepath.Join("..", path)); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s is no program: %v", path, err)
		}
	}
}

func TestPlanTakesArgumentsFromEventAndInputs(t *testing.T) {
	bin := t.TempDir()
	write(t, filepath.Join(bin, "plumb"), echo)
	path := "PATH=" + bin + ":" + os.Getenv("PATH")
	for env, want := range map[string]string{
		"GITHUB_EVENT_NAME=pull_request GITHUB_HEAD_REF=a;b GITHUB_BASE_REF=main": "<plan><--head><a;b><--base><main><--strict>",
		"GITHUB_EVENT_NAME=push GITHUB_REF_TYPE=branch GITHUB_REF_NAME=main":      "<plan><--push=main><--strict>",
		"GITHUB_EVENT_NAME=push GITHUB_REF_TYPE=tag GITHUB_REF_NAME=v1 PLUMB_MUST_START=b\nc\n PLUMB_STRICT=false": "" +
			"<plan><--tag><v1><--must-start><b><--must-start><c>",
		"GITHUB_EVENT_NAME=schedule GITHUB_REF_NAME=main PLUMB_REPOSITORY=r.yaml": "<plan><--push=main><--strict><--repository><r.yaml>",
	} {
		out, code := run(t, bin, "plan.sh", append(strings.Split(env, " "), path, "PLUMB_VERSION="))
		if code != 0 || out != want {
			t.Errorf("%q: exit %d: %s, want %s", env, code, out, want)
		}
	}
}

func TestDownloadedReleaseNeedsItsChecksum(t *testing.T) {
	name := "plumb-" + runtime.GOOS + "-" + runtime.GOARCH
	releases, cache := t.TempDir(), t.TempDir()
	sums := fmt.Sprintf("%x  %s\n%x  other-%s\n", sha256.Sum256([]byte(echo)), name, sha256.Sum256(nil), name)
	for version, text := range map[string]string{"v0.1.0": echo, "v0.2.0": echo + "# changed\n"} {
		write(t, filepath.Join(releases, version, name), text)
		write(t, filepath.Join(releases, version, "SHA256SUMS"), sums)
	}
	env := []string{"PLUMB_RELEASES=file://" + releases, "RUNNER_TEMP=" + cache, "PLUMB_VERSION=v0.1.0"}
	for range 2 { // the second time from the cache
		if out, code := run(t, cache, "plumb.sh", env, "plan", "a b"); code != 0 || out != "<plan><a b>" {
			t.Fatalf("exit %d: %s", code, out)
		}
		must(t, os.RemoveAll(filepath.Join(releases, "v0.1.0")))
	}
	for version, want := range map[string]string{
		"v0.2.0": "does not have its checksum", "v0.3.0": "release v0.3.0 cannot be downloaded",
	} {
		out, code := run(t, cache, "plumb.sh", append(env, "PLUMB_VERSION="+version), "plan")
		if code != 2 || !strings.Contains(out, want) {
			t.Errorf("%s: exit %d: %s", version, code, out)
		}
	}
}

// The hook builds plumb from this repository. It also works during a rebase.
func TestHookRefusesWarnings(t *testing.T) {
	env := []string{"RUNNER_TEMP=" + t.TempDir(), "PLUMB_VERSION=source"}
	for annotation, want := range map[string]int{"on-target-branch": 0, "on-target-brunch": 1} {
		dir := repository(t, annotation)
		for _, branch := range []string{"topic", "--detach"} {
			git := exec.CommandContext(t.Context(), "git", "checkout", "-q", branch)
			git.Dir = dir
			must(t, git.Run())
			out, code := run(t, dir, "pre-commit.sh", env, "--strict")
			if code != want || !strings.Contains(out, "build     ") ||
				want == 1 && !strings.Contains(out, "Did you mean on-target-branch?") {
				t.Errorf("%s, %s: exit %d: %s", annotation, branch, code, out)
			}
		}
	}
}
