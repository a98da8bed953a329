// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/scratch"
)

// Each case is a command, and the words of the table it prints: a line for each pipeline, in the
// order of the files.
func TestPlan(t *testing.T) {
	for name, test := range map[string]struct {
		args    []string
		prepare func(*scratch.Repo)
		want    []string // beginnings of lines: pipeline, starts, and of the sentence what follows
		assumed string
	}{
		"the pull request of this branch": {want: []string{
			"build yes on-event includes pull_request; on-target-branch [main] matches main", "deploy no", "docs yes",
			"ready no",
		}},
		"its changed files are those of the branch and of the disk": {
			args: []string{"--base", "release-1", "--head=x"}, want: []string{
				"build yes on-event includes pull_request; on-target-branch [release-*] matches release-1", "deploy no",
				"docs no on-target-branch [main] does not match release-1", "ready no",
			}},
		"a push of this branch": {args: []string{"--push"}, want: []string{
			"build no on-target-branch [main, release-*, refs/tags/v*] does not match topic", "deploy no", "docs no", "ready no",
		}},
		"a push to main": {args: []string{"--push=main"},
			want:    []string{"build yes on-event includes push", "deploy no", "docs no", "ready no"},
			assumed: "Assumed: the branch has no open pull request.\n"},
		"a tag": {args: []string{"--tag", "v1"}, want: []string{
			"build yes on-event includes push; on-target-branch [refs/tags/v*] matches refs/tags/v1", "deploy no", "docs no",
			"ready no",
		}},
		"a request to /incoming": {args: []string{"--incoming", "docs", "--push=main"}, want: []string{
			"build no the command does not name it", "deploy no", "docs yes a request to /incoming asks for it by its name",
			"ready no",
		}},
		"a request to /incoming for this branch": {args: []string{"--incoming", "build"}, want: []string{
			"build yes a request to /incoming asks for it by its name", "deploy no", "docs no", "ready no",
		}},
		"a label": {args: []string{"--label=ready"}, want: []string{"build no", "deploy no", "docs no", "ready yes"},
			assumed: "Assumed: dev may write to the repository, so no approval is needed.\n"},
		"another label": {args: []string{"--label=ready", "--label", "other"},
			want:    []string{"build no", "deploy no", "docs no", "ready yes"},
			assumed: "Assumed: dev may write to the repository, so no approval is needed.\n"},
		"a label it has not": {args: []string{"--label=other"},
			want: []string{
				"build no", "deploy no", "docs no", "ready no on-label [ready] includes none of the labels [other]",
			},
			assumed: "Assumed: dev may write to the repository, so no approval is needed.\n"},
		"a comment": {args: []string{"--comment", "/deploy it"}, want: []string{
			"build no", `deploy yes on-comment "^/deploy" matches the comment "/deploy it"`, "docs no", "ready no",
		},
			assumed: "Assumed: dev may write to the repository, so no approval is needed.\n"},
		"changed files that are given": {args: []string{"--changed", "main.go", "added=x/y z"},
			want: []string{"build yes", "deploy no",
				"docs no on-path-change [docs/**] matches no changed file (changed: main.go and 1 more)", "ready no"}},
		"of GitLab": {prepare: func(r *scratch.Repo) {
			r.Git("remote", "set-url", "origin", "git@gitlab.com:group/sub/app.git")
		},
			want: []string{"build yes", "deploy no", "docs yes", "ready no"}},
		"from a detached HEAD, with a name": {prepare: func(r *scratch.Repo) { r.Git("checkout", "--quiet", "--detach") },
			args: []string{"--head", "topic"},
			want: []string{"build yes", "deploy no", "docs yes", "ready no"}},
		"without a remote, with an address": {prepare: func(r *scratch.Repo) { r.Git("remote", "remove", "origin") },
			args: []string{"--url", "https://github.com/acme/app"},
			want: []string{"build yes", "deploy no", "docs yes", "ready no"}},
		"what is on disk counts, not what is committed": {prepare: func(r *scratch.Repo) {
			r.Remove(".tekton/ready.yaml")
			r.Write(map[string]string{".tekton/docs.yaml": run("other", "on-event: pull_request", "on-target-branch: main")})
		}, want: []string{"build yes", "deploy no", "other yes"}},
	} {
		t.Run(name, func(t *testing.T) {
			repo := topic(t, nil)
			if test.prepare != nil {
				test.prepare(repo)
			}
			got := plumb(t.Context(), repo.Dir, "", append([]string{"plan"}, test.args...)...)
			if got.code != exitOK || got.said != "" {
				t.Fatalf("exit %d: %s", got.code, got.said)
			}
			table, assumed, _ := strings.Cut(got.out, "\n\n")
			lines := strings.Split(strings.TrimSpace(table), "\n")[1:]
			if len(lines) != len(test.want) || assumed != test.assumed {
				t.Fatalf("got %q and %q, want %d lines and %q", lines, assumed, len(test.want), test.assumed)
			}
			for i, want := range test.want {
				if line := strings.Join(strings.Fields(lines[i]), " "); !strings.HasPrefix(line, want) {
					t.Errorf("got %q, want %q", line, want)
				}
			}
		})
	}
}

func TestPlanAsText(t *testing.T) {
	repo := topic(t, nil)
	got := plumb(t.Context(), repo.Dir, "", "plan")
	want := `PIPELINE  STARTS  WHY
build     yes     on-event includes pull_request; on-target-branch [main] matches main
deploy    no      no annotation on-event
docs      yes     on-event includes pull_request; on-target-branch [main] matches main; on-path-change [docs/**] matches the changed file docs/a.md
ready     no      on-label [ready] includes none of the labels []
`
	if diff := cmp.Diff(want, got.out); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestPlanWithNothingToStart(t *testing.T) {
	for name, test := range map[string]struct {
		message string
		args    []string
		code    int
		want    string
	}{
		"a commit that asks for no CI": {
			"x [skip ci]", nil, exitOK, "Nothing starts: the message of the commit has a skip CI command.\n",
		},
		"a command that names what there is not":      {"x", []string{"--comment", "/test biuld"}, exitAuthor, ""},
		"an event that the Git service never is told": {"x", []string{"--comment", "  "}, exitOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			repo := topic(t, nil)
			repo.Commit(test.message)
			got := plumb(t.Context(), repo.Dir, "", append([]string{"plan"}, test.args...)...)
			if got.code != test.code || test.want != "" && got.out != test.want {
				t.Errorf("exit %d: %s%s", got.code, got.out, got.said)
			}
			if must := plumb(t.Context(), repo.Dir, "", append([]string{"plan", "--must-start=build"},
				test.args...)...); must.code != exitAuthor || !strings.Contains(must.said, "plumb: build would not start: ") {
				t.Errorf("--must-start: exit %d: %s", must.code, must.said)
			}
		})
	}
}

func TestMustStart(t *testing.T) {
	repo := topic(t, map[string]string{".tekton/web.yaml": run("web", "on-event: pull_request", "on-target-branch: main",
		"task: https://127.0.0.1:1/x.yaml")})
	for name, test := range map[string]struct {
		names []string
		code  int
		want  string
	}{
		"what starts": {[]string{"build", "docs"}, exitOK, ""},
		"what does not": {[]string{"build", "ready"}, exitAuthor,
			"plumb: ready would not start: on-label [ready] includes none of the labels []\n"},
		"what is unknown": {[]string{"web"}, exitAuthor, "plumb: web would not start: it is unknown here (.tekton/web.yaml:1: annotation pipelinesascode.tekton.dev/task: https://127.0.0.1:1/x.yaml: not fetched (--fetch))\n"},
		"what is not there": {[]string{"biuld"}, exitAuthor,
			"plumb: biuld would not start: no pipeline has that name (all: build, deploy, docs, ready, web)\n"},
		"two that do not": {[]string{"ready", "deploy"}, exitAuthor,
			"plumb: ready would not start: on-label [ready] includes none of the labels []\nplumb: deploy would not start: no annotation on-event\n"},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"plan"}
			for _, name := range test.names {
				args = append(args, "--must-start", name)
			}
			if got := plumb(t.Context(), repo.Dir, "", args...); got.code != test.code || got.said != test.want {
				t.Errorf("exit %d: %s", got.code, got.said)
			}
		})
	}
}

func TestPlanShowsMistakes(t *testing.T) {
	repo := topic(t, map[string]string{
		".tekton/a.yaml": run("a", "on-cel-expression: taget_branch == \"main\""), ".tekton/b.yaml": "a: b: c\n",
		".tekton/c.yaml": "kind: ConfigMap\napiVersion: v1\n---\nkind: PipelineRun\napiVersion: tekton.dev/v1alpha1\n",
		".tekton/d.yaml": strings.Replace(run("d", "on-event: pull_request", "on-target-branch: main"), "spec: {",
			"spec: {timeouts: {pipeline: 1 hour}, ", 1),
	})
	want := `.tekton/a.yaml:6:51: error: pipeline a: on-cel-expression: 1:1: taget_branch is not defined. Did you mean target_branch?
 6 |     pipelinesascode.tekton.dev/on-cel-expression: taget_branch == "main"
   |                                                   ^
.tekton/b.yaml:1:5: error: this is not YAML: the value has a colon and a space: put quotes around it
 1 | a: b: c
   |     ^
.tekton/c.yaml:5:13: error: apiVersion: Tekton has no PipelineRun of tekton.dev/v1alpha1: write apiVersion: tekton.dev/v1
 5 | apiVersion: tekton.dev/v1alpha1
   |             ^
.tekton/d.yaml:8:29: error: spec.timeouts.pipeline: "1 hour" is no duration (write 1h0m)
 8 | spec: {timeouts: {pipeline: 1 hour}, pipelineSpec: {tasks: [{name: t, taskSpec: {steps: [{name: s, image: busybox, script: 'echo {{ revision }}'}]}}]}}
   |                             ^
`
	for _, form := range outputs() {
		got := plumb(t.Context(), repo.Dir, "", "plan", "-o", form)
		if diff := cmp.Diff(want, got.said); diff != "" || got.code != exitAuthor {
			t.Errorf("-o %s: exit %d, standard error (-want +got):\n%s", form, got.code, diff)
		}
	}
}

func TestPlanAsJSON(t *testing.T) {
	repo := topic(t, map[string]string{".tekton/a.yaml": run("a", "on-event: '[push'", "on-target-branch: main")})
	got := plumb(t.Context(), repo.Dir, "", "plan", "-o", "json", "--push=main", "--sender", "ada")
	var read struct {
		Event     map[string]any
		Pipelines []struct {
			Pipeline, Starts, Why string
			PipelineRun           struct{ Namespace, Name string }
			Error                 struct {
				File, Reason string
				Line, Column int
			}
		}
		Disposition string
		Assumed     []string
	}
	if err := json.Unmarshal([]byte(got.out), &read); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"name": "push-0", "service": "github", "repository": "https://github.com/acme/app", "trigger": "push", "type": "push",
		"base": "refs/heads/main", "head": "refs/heads/main",
		"changedFiles": 3.0, "uncommittedFiles": 1.0,
		"sender": "ada", "sha": repo.Git("rev-parse", "HEAD"), "before": repo.Git("rev-parse", "main"),
	}
	if diff := cmp.Diff(want, read.Event,
		cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == `["name"]` }, cmp.Ignore())); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	if got.code != exitAuthor || read.Disposition != "RunsCreated" || len(read.Assumed) != 1 || len(read.Pipelines) != 5 {
		t.Fatalf("exit %d: %+v", got.code, read)
	}
	if a := read.Pipelines[0]; a.Starts != "no" || a.Error.File != ".tekton/a.yaml" || a.Error.Line != 6 ||
		a.Error.Column != 42 || a.Error.Reason != "BadAnnotation" {
		t.Errorf("got %+v", a)
	}
	if build := read.Pipelines[1]; build.Starts != "yes" || build.PipelineRun.Namespace != "default" ||
		!strings.HasPrefix(build.PipelineRun.Name, "build-") || !strings.HasPrefix(build.Why, "selected: ") {
		t.Errorf("got %+v", build)
	}
}
