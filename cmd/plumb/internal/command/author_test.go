// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/terminal"
)

func TestFirstLineSaysWhichEventWasPlanned(t *testing.T) {
	shared := topic(t, nil)
	save(t, shared, "github/pull-synchronize-branch.json", githubHeaders+"pull_request")
	shared.Commit("Save a delivery")
	shared.Write(map[string]string{"more.go": "x"})
	for args, want := range map[string]string{
		"":                            "Pull request topic → main, github.com/acme/app, 6 changed files (1 uncommitted)",
		"--base=release-1 --number=7": "Pull request 7 topic → release-1, github.com/acme/app",
		"--changed=a --sender=ann":    "Pull request topic → main, github.com/acme/app, 1 changed file, by ann",
		"--push":                      "Push of topic, github.com/acme/app, 1 changed file (1 uncommitted)",
		"--push=main":                 "Push of topic to main, github.com/acme/app, 6 changed files (1 uncommitted)",
		"--tag=v1":                    "Push of tag v1, github.com/acme/app, 1 changed file (1 uncommitted)",
		"--label=a --label=b":         "Label b on pull request topic → main, github.com/acme/app, 6 changed files (1 uncommitted)",
		"--comment=/test":             `Comment "/test" on pull request topic → main, github.com/acme/app, 6 changed files (1 uncommitted)`,
		"--author=eve":                "Pull request topic → main, github.com/acme/app, 6 changed files (1 uncommitted), opened by eve",
		"--author=eve --sender=eve --comment=/test":    `Comment "/test" on pull request topic → main, github.com/acme/app, opened by eve`,
		"--payload=payload.json --headers=headers.txt": "Pull request 12 topic → main, github.com/acme/app, by dev",
	} {
		got := plumb(t.Context(), shared.Dir, "", append([]string{"plan"}, strings.Fields(args)...)...)
		if got.code != exitOK || got.event != want+"\n" {
			t.Errorf("%s: exit %d: %q, want %q: %s", args, got.code, got.event, want, got.said)
		}
	}
}

func TestFirstLineNamesMergeQueue(t *testing.T) {
	repo := topic(t, nil)
	save(t, repo, "github/merge-group-requested.json", githubHeaders+"merge_group")
	got := plumb(t.Context(), repo.Dir, "", "plan", "--payload=payload.json", "--headers=headers.txt")
	if got.code != exitOK || !strings.HasPrefix(got.event, "Merge queue of main, github.com/") {
		t.Errorf("exit %d: %q %s%s", got.code, got.event, got.out, got.said)
	}
}

// Answers, errors and carets have colors.
func TestPlanWrapsAndColorsOnATerminal(t *testing.T) {
	repo := topic(t, map[string]string{".tekton/a.yaml": run("a", "on-event: '[push'", "on-target-branch: main")})
	var out, said bytes.Buffer
	code := Run(t.Context(), Process{
		Args: []string{"plumb", "plan", "-o=wide"}, Dir: repo.Dir, Out: &out, Err: &said, Version: devel,
		Terminal: func(io.Writer) terminal.Terminal { return terminal.Terminal{Width: 80, Color: true} },
	})
	const red, green, end = "\x1b[31m", "\x1b[32m", "\x1b[0m"
	for _, part := range []string{
		"a         .tekton/a.yaml       " + red + "no" + end + "      error, see above\n",
		"build     .tekton/build.yaml   " + green + "yes" + end + "     on-event includes pull_request;\n" +
			strings.Repeat(" ", 39) + "on-target-branch [main] matches main\n",
	} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("got\n%s\nwant %q", out.String(), part)
		}
	}
	if code != exitAuthor || !strings.Contains(said.String(), red+"error"+end) ||
		!strings.Contains(said.String(), "\x1b[1m^"+end) {
		t.Errorf("exit %d: %q", code, said.String())
	}
}

// All other users may write.
func TestGivenAuthorIsUntrusted(t *testing.T) {
	repo := topic(t, nil)
	repo.Git("checkout", "--quiet", "main")
	repo.Git("checkout", "--quiet", "-b", "other")
	for _, service := range []string{"https://github.com/acme/app", "https://gitlab.com/acme/app"} {
		for args, want := range map[string]string{
			"":                             "Nothing starts. The author of the pull request has no write access",
			"--sender=ann":                 "Nothing starts. The author of the pull request has no write access",
			"--label=ready":                "Nothing starts. The author of the pull request has no write access",
			"--comment=/ok-to-test":        "PIPELINE  STARTS  WHY\nbuild     yes ",
			"--comment=/test --sender=EVE": "Nothing starts. The author of the comment has no write access",
		} {
			got := plumb(t.Context(), repo.Dir, "",
				append([]string{"plan", "--author=eve", "--url=" + service}, strings.Fields(args)...)...)
			if got.code != exitOK || !strings.HasPrefix(got.out, want) {
				t.Errorf("%s %s: exit %d: %s%s, want %s", service, args, got.code, got.out, got.said, want)
			}
		}
	}
}

func TestMatrixShowsWhatEachEventStarts(t *testing.T) {
	repo := topic(t, map[string]string{
		".tekton/z.yaml": run("z", `on-event: "[push]"`, "on-target-branch: main", "on-labels: x"),
	})
	args := []string{"plan", "--matrix", "-o=wide", "--comment=/deploy", "--label=ready", "--tag=v2"}
	got := plumb(t.Context(), repo.Dir, "", args...)
	want := `PULL REQUEST  Pull request topic → main, github.com/acme/app, 3 changed files (1 uncommitted)
PUSH          Push of topic to main, github.com/acme/app, 3 changed files (1 uncommitted)
TAG           Push of tag v2, github.com/acme/app, 1 changed file (1 uncommitted)
COMMENT       Comment "/deploy" on pull request topic → main, github.com/acme/app, 3 changed files (1 uncommitted)
LABEL         Label ready on pull request topic → main, github.com/acme/app, 3 changed files (1 uncommitted)

PIPELINE  FILE                 PULL REQUEST  PUSH  TAG  COMMENT  LABEL
build     .tekton/build.yaml   yes           yes   yes  no       no
deploy    .tekton/deploy.yaml  no            no    no   yes      no
docs      .tekton/docs.yaml    yes           no    no   no       no
ready     .tekton/ready.yaml   no            no    no   no       yes
z         .tekton/z.yaml       no            yes   no   no       no

Assumed: the branch has no open pull request.
Assumed: dev may write to the repository, so no approval is needed.
`
	diff := cmp.Diff(want, got.event+got.out)
	if diff != "" || got.code != exitOK || strings.Count(got.said, "warning") != 1 {
		t.Errorf("exit %d: %s (-want +got):\n%s", got.code, got.said, diff)
	}
	if got = plumb(t.Context(), repo.Dir, "", "plan", "--matrix", "--comment=/test biuld"); got.code != exitAuthor ||
		!strings.Contains(got.out, ". Nothing starts: no pipeline is called biuld. Did you mean build?") {
		t.Errorf("exit %d: %s%s", got.code, got.out, got.said)
	}
	if got = plumb(t.Context(), repo.Dir, "", "plan", "--matrix", "--must-start=deploy"); got.code != exitAuthor {
		t.Errorf("exit %d: %s%s", got.code, got.out, got.said)
	}
	if got = plumb(t.Context(), repo.Dir, "", "plan", "--matrix", "-o=json"); got.code != exitOK ||
		strings.Count(got.out, `"disposition"`) != 4 {
		t.Errorf("exit %d: %s%s", got.code, got.out, got.said)
	}
}

func TestPlanOnDefaultBranchIsAPush(t *testing.T) {
	repo := topic(t, nil)
	repo.Git("checkout", "--quiet", "main")
	got := plumb(t.Context(), repo.Dir, "", "plan")
	if got.code != exitOK || !strings.HasPrefix(got.event, "Push of main, ") ||
		!strings.Contains(got.out, "\nbuild     yes     on-event includes push") ||
		!strings.Contains(got.out, "Assumed: main is the default branch, so the event is a push to it (") {
		t.Errorf("exit %d: %s%s%s", got.code, got.event, got.out, got.said)
	}
}

func TestWhatHasNoEffectIsAWarningAndFailsWithStrict(t *testing.T) {
	repo := topic(t, map[string]string{".tekton/a.yaml": run("a", `on-event: "[pull-request]"`, "on-target-branches: main",
		`on-label: "{{ revisoin }}"`)})
	want := []string{
		".tekton/a.yaml:6:5: warning: no event is called pull-request. Did you mean pull_request?\n",
		".tekton/a.yaml:7:5: warning: on-target-branches does not exist. Did you mean on-target-branch?\n",
		".tekton/a.yaml:8:43: warning: {{ revisoin }} is not defined, so it stays as it is. Did you mean {{ revision }}?\n",
	}
	for flag, code := range map[string]int{"--strict=false": exitOK, "--strict": exitAuthor} {
		got := plumb(t.Context(), repo.Dir, "", "plan", flag)
		if got.code != code || strings.Count(got.said, "warning") != len(want) {
			t.Errorf("%s: exit %d: %s", flag, got.code, got.said)
		}
		for _, line := range want {
			if !strings.Contains(got.said, line) {
				t.Errorf("got\n%s\nwant %s", got.said, line)
			}
		}
	}
	repo.Remove(".tekton/a.yaml")
	if got := plumb(t.Context(), repo.Dir, "", "plan", "--strict"); got.code != exitOK {
		t.Errorf("exit %d: %s", got.code, got.said)
	}
}

// Files are completed only for flags that name files.
func TestCompletionNamesBranchesTagsAndPipelines(t *testing.T) {
	repo := topic(t, nil)
	repo.Git("tag", "v1")
	for args, want := range map[string]string{
		"--base ": "main\ntopic\n", "--head ": "main\ntopic\n", "--push=": "main\ntopic\n", "--tag ": "v1\n",
		"--must-start ": "build\ndeploy\ndocs\nready\n", "--label ": "", "--author ": "", "--sender ": "",
	} {
		words := append([]string{"__complete", "plan"}, strings.Split(args, " ")...)
		if got := plumb(t.Context(), repo.Dir, "", words...); got.code != exitOK || got.out != want+":4\n" {
			t.Errorf("%s: %q, want %q", args, got.out, want)
		}
	}
	if got := plumb(t.Context(), t.TempDir(), "", "__complete", "plan", "--base", ""); got.out != ":4\n" {
		t.Errorf("outside of a repository: %q", got.out)
	}
}

func TestHelpOfPlanGroupsFlagsAndNamesDefaults(t *testing.T) {
	got := plumb(t.Context(), t.TempDir(), "", "plan", "--help")
	at := 0
	for _, part := range []string{"\nEvent:\n", "--base branch", "--author login", "\nRecorded delivery:\n", "--payload file",
		"\nSettings:\n", "(default: plumbline)", "\nOutput:\n", "-o, --output form", "(default: table)"} {
		next := strings.Index(got.out[at:], part)
		if next < 0 {
			t.Fatalf("%q is missing, or not in order:\n%s", part, got.out)
		}
		at += next
	}
	if strings.Contains(got.out, "(default \"") || strings.Contains(got.out, "the current branch\"]") {
		t.Errorf("a default of pflag's own:\n%s", got.out)
	}
}
