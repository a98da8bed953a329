// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/scratch"
)

// Each case starts nothing. Every form of output says why, and a command that cannot be done is a
// mistake.
func TestNothingStarts(t *testing.T) {
	shared := topic(t, nil)
	save(t, shared, "github/pull-synchronize-branch.json", githubHeaders+"pull_request", `"action": "synchronize"`,
		`"action": "closed"`)
	const there, meant = "(All: build, deploy, docs, ready).", "Did you mean build? "
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"an event that no pipeline is for": {
			[]string{"--label=other"}, exitOK,
			"Nothing starts: none of the 4 pipelines in .tekton is for this event.\n",
		},
		"a comment": {
			[]string{"--comment=hello"}, exitOK,
			"Nothing starts: none of the 4 pipelines in .tekton is for this event.\n",
		},
		"a name that there is not": {
			[]string{"--comment=/test biuld"}, exitAuthor,
			"Nothing starts: no pipeline is called biuld. " + meant + there + "\n",
		},
		"one of two names": {
			[]string{"--comment=/test build biuld"}, exitAuthor,
			"Nothing starts: no pipeline is called biuld. " + meant + there + "\n",
		},
		"a name to run again": {
			[]string{"--comment=/retest biuld lnit"}, exitAuthor,
			"Nothing starts: no pipeline is called biuld, lnit. " + there + "\n",
		},
		"two commands": {
			[]string{"--comment=/test build\n/cancel"}, exitAuthor,
			"Nothing starts: this comment has two different commands, /test and /cancel. Write one comment for each command.\n",
		},
		"a param that there is not": {
			[]string{"--comment=/test tier=gold"}, exitAuthor,
			"Nothing starts: the Repository has no param tier in spec.params. Those that can be set: none.\n",
		},
		"a value that is not closed": {
			[]string{`--comment=/test a="b`}, exitAuthor,
			"Nothing starts: the quotes around the value of a are not closed.\n",
		},
		"an approval by the author": {
			[]string{"--comment=/ok-to-test"}, exitOK,
			"Nothing starts. The author of a pull request cannot approve it: another user has to.\n",
		},
		"a cancellation": {
			[]string{"--comment=/cancel"}, exitOK,
			"Nothing starts, and all earlier runs of pull request 1 are cancelled: dev requested it in a comment.\n",
		},
		"a cancellation of some": {
			[]string{"--comment=/cancel docs build", "--number=7"}, exitOK,
			"Nothing starts, and the earlier runs of pull request 7 that are called docs, build are cancelled: dev requested it in a comment.\n",
		},
		"a pull request that is closed": {
			[]string{"--payload=payload.json", "--headers=headers.txt"}, exitOK,
			"Nothing starts, and all earlier runs of pull request 12 are cancelled: maintainer closed the pull request.\n",
		},
		"an event that is never looked at": {
			[]string{"--comment=/test", "--sender=ci[bot]"}, exitOK,
			"Nothing starts: the comment of a bot starts nothing.\n",
		},
		"a push to a branch of no pipeline": {
			[]string{"--push=other"}, exitOK,
			"Nothing starts: none of the 4 pipelines in .tekton is for this event.\n",
		},
		"a command with characters unseen": {
			[]string{"--comment=/test\u00a0biuld\u200b"}, exitAuthor,
			"Nothing starts: no pipeline is called biuld. " + meant + there + "\n",
		},
		"a command on the last line, with CRs": {
			[]string{"--comment=please\r\n/test biuld\r\n"}, exitAuthor,
			"Nothing starts: no pipeline is called biuld. " + meant + there + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, form := range outputs() {
				got := plumb(t.Context(), shared.Dir, "", append([]string{"plan", "-o", form}, test.args...)...)
				if got.code != test.code {
					t.Errorf("-o %s: exit %d, want %d: %s", form, got.code, test.code, got.said)
				}
				switch table := strings.HasPrefix(got.out, "PIPELINE"); form {
				case outputTable:
					if !table && !strings.HasPrefix(got.out, test.want) || table && test.code != exitOK && got.said != test.want {
						t.Errorf("the table: %s%s\nwant %q", got.out, got.said, test.want)
					}
				case outputYAML:
					if got.out != "" || !strings.HasPrefix(got.said, test.want) {
						t.Errorf("YAML: %s%s\nwant %q", got.out, got.said, test.want)
					}
				case outputJSON:
					if (got.said == test.want) != (test.code != exitOK) {
						t.Errorf("JSON: standard error %q, want %q with exit %d", got.said, test.want, test.code)
					}
				}
			}
		})
	}
}

// A pipeline that starts adds no sentence. Each pipeline that plumb cannot decide has one.
func TestYAMLOfWhatNobodyCanTell(t *testing.T) {
	repo := topic(t, map[string]string{".tekton/web.yaml": run("web", "on-event: pull_request", "on-target-branch: main",
		"task: https://127.0.0.1:1/x.yaml")})
	got := plumb(t.Context(), repo.Dir, "", "plan", "-o=yaml")
	if got.code != exitOK || !strings.HasPrefix(got.said, "It is unknown here whether web starts: .tekton/web.yaml:1: ") ||
		strings.Count(got.out, "kind: PipelineRun") != 2 {
		t.Errorf("exit %d: %s%s", got.code, got.out, got.said)
	}
}

func TestACancellationAsJSON(t *testing.T) {
	got := plumb(t.Context(), topic(t, nil).Dir, "", "plan", "-o=json", "--comment=/cancel build")
	var read struct {
		Event   struct{ PullRequest int }
		Cancels struct {
			By    string
			Names []string
		}
	}
	must(t, json.Unmarshal([]byte(got.out), &read))
	if read.Event.PullRequest != 1 || read.Cancels.By != "dev" || !cmp.Equal(read.Cancels.Names, []string{"build"}) {
		t.Errorf("got %+v", read)
	}
}

// A comment that begins like a command and is none says so, unless it starts something.
func TestUnknownCommand(t *testing.T) {
	repo := topic(t, nil)
	repo.Write(map[string]string{
		"repository.yaml": "apiVersion: pipelinesascode.tekton.dev/v1alpha1\nkind: Repository\nmetadata: {name: app}\n" +
			"spec: {url: https://github.com/acme/app, settings: {gitops_command_prefix: ci}}\n"})
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--comment=/retset build"}, "Assumed: /retset is not a command, so this is an ordinary comment (commands: /test, /retest, /ok-to-test, /cancel, /why).\n"},
		{[]string{"--comment=/test", "--repository=repository.yaml"},
			"Assumed: /test is not a command, so this is an ordinary comment (commands: /ci test, /ci retest, /ci ok-to-test, /ci cancel, /ci why).\n"},
		{[]string{"--comment=/deploy"}, ""}, {[]string{"--comment=hello"}, ""}, {[]string{"--comment=/test"}, ""},
		{[]string{"--comment=\uff0ftest"}, ""},
		{[]string{"--comment=/retest"}, "Assumed: nothing has run on the commit yet.\n"},
	} {
		got := plumb(t.Context(), repo.Dir, "", append([]string{"plan"}, test.args...)...)
		if said := strings.Contains(got.out, "is not a command"); got.code != exitOK ||
			!strings.Contains(got.out, test.want) || test.want == "" && said {
			t.Errorf("%v: exit %d: %s%s", test.args, got.code, got.out, got.said)
		}
	}
}

// .tekton that no event can read is refused as in the cluster. The rest of the cases are those of
// package worktree.
func TestTektonIsASubmodule(t *testing.T) {
	repo, other := scratch.New(t, map[string]string{"README.md": "x"}),
		scratch.New(t, map[string]string{"build.yaml": run("build", "on-event: pull_request")})
	repo.Git("checkout", "--quiet", "-b", "topic")
	repo.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.Dir, ".tekton")
	got := plumb(t.Context(), repo.Dir, "", "plan")
	if got.code != exitAuthor || !strings.HasPrefix(got.said,
		".tekton: error: .tekton is a submodule, and no submodule is followed") {
		t.Errorf("exit %d: %s%s", got.code, got.out, got.said)
	}
}
