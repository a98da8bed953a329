// SPDX-License-Identifier: Apache-2.0

package command

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/scratch"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider/github"
)

// save writes a delivery of a provider's own tests where a command finds it:
// "github/push-branch.json". Commits of the sample are replaced by pairs.
func save(t *testing.T, repo *scratch.Repo, sample, headers string, replace ...string) {
	t.Helper()
	service, file, _ := strings.Cut(sample, "/")
	data, err := os.ReadFile(filepath.Join("../../../../pkg/provider", service, "testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	repo.Write(map[string]string{
		"payload.json": strings.NewReplacer(replace...).Replace(string(data)), "headers.txt": headers,
	})
}

const (
	githubHeaders = "X-GitHub-Delivery: 72d3162e\nX-GitHub-Hook-Installation-Target-Type: integration\nX-GitHub-Event: "
	gitlabHeaders = "Idempotency-Key: 72d3162e\nX-Gitlab-Event: "
	// headOfSamples and beforeOfSamples are in all the samples.
	headOfSamples = "6113728f27ae82c7b1a177c8d03f9e96e0adf246"
	baseOfSamples = "1481a2de7b2a7d02428ad93446ab166be7793fbb"
)

func recordedPipelines() map[string]string {
	return map[string]string{
		".tekton/build.yaml": run("build", `on-event: "[push, pull_request]"`, `on-target-branch: main`),
		".tekton/body.yaml":  run("body", `on-cel-expression: '!has(body.action) || body.action == "opened"'`),
		".tekton/docs.yaml": run("docs", `on-event: "[push, pull_request]"`, `on-target-branch: main`,
			`on-path-change: "docs/**"`),
		".tekton/say.yaml": run("say", `on-comment: deploy`),
	}
}

func TestRecorded(t *testing.T) {
	for name, test := range map[string]struct {
		service, sample, headers string
		has                      int // how many of the event's two commits the clone has: the head first
		args                     []string
		want                     []string
	}{
		"a push that the clone does not have": {"github", "push-branch.json", githubHeaders + "push", 0, nil, []string{
			"build yes", "body yes", "docs unknown listing the changed files: the clone has no commit " + headOfSamples,
			"say no",
			"Assumed: .tekton is read as it is on disk, because the clone does not have the event's commit " +
				headOfSamples[:8] + ".", "Assumed: the branch has no open pull request."}},
		"a push that the clone has": {"github", "push-branch.json", githubHeaders + "push", 2, nil,
			[]string{"build yes", "docs yes", "Assumed: .tekton is read at the event's commit "}},
		"a push onto what the clone does not have": {"github", "push-branch.json", githubHeaders + "push", 1, nil, []string{
			"build yes", "docs unknown listing the changed files: the clone has no commit " + baseOfSamples +
				", which was there before the push"}},
		"with the changed files": {"github", "push-branch.json", githubHeaders + "push", 0, []string{"--changed=docs/x"},
			[]string{"build yes", "docs yes"}},
		"a pull request": {"github", "pull-opened-fork.json", githubHeaders + "pull_request", 2, nil,
			[]string{"build yes", "body yes", "docs yes", "Assumed: dev may write to the repository"}},
		"a pull request that the clone does not have": {"github", "pull-opened-fork.json", githubHeaders +
			"pull_request", 0, nil, []string{
			"build yes", "body yes", "docs unknown",
			"Assumed: the commit's message, which is not known here, does not ask for no CI."}},
		"a comment": {"github", "comment-created.json", githubHeaders + "issue_comment", 0, nil,
			[]string{"build no", "say yes",
				"Assumed: the comment's pull request has the commit that is checked out, from topic to main."}},
		"a merge request": {"gitlab", "mr-open-fork.json", gitlabHeaders + "Merge Request Hook", 2, nil,
			[]string{"build yes", "body yes", "docs yes"}},
		"a note": {
			"gitlab", "note-merge-request.json", gitlabHeaders + "Note Hook", 0, nil, []string{"build no", "say yes"},
		},
		"what starts nothing": {
			"github", "push-deleted.json", githubHeaders + "push", 0, nil, []string{"Nothing starts: refs/heads/"},
		},
		"a webhook that is not the App's": {"github", "pull-opened-fork.json",
			"X-GitHub-Delivery: 1\nX-GitHub-Event: pull_request", 2, nil,
			[]string{"build yes"}},
	} {
		t.Run(name, func(t *testing.T) {
			repo := scratch.New(t, recordedPipelines())
			base := repo.Git("rev-parse", "HEAD")
			repo.Git("checkout", "--quiet", "-b", "topic")
			repo.Write(map[string]string{"docs/a.md": "x"})
			head := repo.Commit("Write it down")
			replace := []string{headOfSamples, head, baseOfSamples, base}[:2*test.has]
			repo.Write(map[string]string{"docs/b.md": "not committed"})
			save(t, repo, test.service+"/"+test.sample, test.headers, replace...)
			got := plumb(t.Context(), repo.Dir, "",
				append([]string{"plan", "--payload=payload.json", "--headers=headers.txt"}, test.args...)...)
			if got.code != exitOK {
				t.Fatalf("exit %d: %s", got.code, got.said)
			}
			lines := "\n"
			for line := range strings.Lines(got.out) {
				lines += strings.Join(strings.Fields(line), " ") + "\n"
			}
			for _, want := range test.want {
				if !strings.Contains(lines, "\n"+want) {
					t.Errorf("got\n%s\nwant a line %q", got.out, want)
				}
			}
		})
	}
}

// The names of PipelineRuns are the controller's: they are made of what tells a delivery from
// others, at GitHub its body, and its key where a body tells of no time.
func TestRecordedNames(t *testing.T) {
	repo := scratch.New(t, recordedPipelines())
	save(t, repo, "github/push-branch.json", githubHeaders+"push")
	file := filepath.Join(repo.Dir, "payload.json")
	data, err := os.ReadFile(file) // #nosec G304 -- the test's own
	if err != nil {
		t.Fatal(err)
	}
	spec, err := github.New(github.Options{}).Webhook.Decode(http.Header{"X-Github-Event": {"push"},
		"X-Github-Delivery": {"1"}}, data)
	if err != nil {
		t.Fatal(err)
	}
	named := plumb(t.Context(), repo.Dir, "", "plan", "--payload="+file, "--headers=headers.txt", "-o=json")
	piped := plumb(t.Context(), repo.Dir, string(data), "plan", "--payload=-", "--headers=headers.txt", "-o=json")
	if want := spec.EventName(); !strings.Contains(named.out, `"`+want+`"`) || piped.out != named.out {
		t.Errorf("want the event %s, got\n%s\nand of standard input\n%s", want, named.out, piped.out)
	}
	save(t, repo, "github/push-branch.json", githubHeaders+"push", `"pushed_at"`, `"nothing_at"`)
	other := plumb(t.Context(), repo.Dir, "", "plan", "--payload=payload.json", "--headers=headers.txt", "-o=json",
		"--delivery=other")
	if want := v1alpha1.EventName("push", "github", "github.com", "other"); !strings.Contains(other.out, `"`+want+`"`) {
		t.Errorf("want the event %s, got\n%s", want, other.out)
	}
}
