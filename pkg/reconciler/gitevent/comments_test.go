// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// bodyIsComment decodes every body as the text of a comment.
type bodyIsComment struct{ provider.Webhook }

func (bodyIsComment) Decode(h http.Header, body []byte) (*v1alpha1.GitEventSpec, error) {
	if h.Get("X-Event") != "comment" {
		return nil, fault.Ignoredf("UnsupportedEvent", "the headers are not those of the delivery")
	}
	return &v1alpha1.GitEventSpec{Comment: &v1alpha1.Comment{ID: 9, Body: string(body)}}, nil
}

// commented makes the event a comment of member on author's pull request from a branch of the
// repository; both may write.
func commented(t *testing.T, body string, files ...git.File) *env {
	w := newEnv(t, files...)
	w.setPayload(body)
	w.edit(func(e *v1alpha1.GitEvent) {
		e.Spec.Trigger, e.Spec.EventType, e.Spec.SHA, e.Spec.Sender = v1alpha1.TriggerPullRequest, match.CommentEvent, "",
			"member"
		e.Spec.BaseRef, e.Spec.HeadRef, e.Spec.HeadURL, e.Spec.Commit = "", "", "", nil
		e.Spec.PullRequest = &v1alpha1.PullRequest{Number: 3, Author: "author"}
		e.Spec.Comment = &v1alpha1.Comment{ID: 9}
		e.Spec.Headers = map[string]string{"X-Event": "comment"}
	})
	w.git.complete = w.headAt(sha)
	w.git.canWrite = func(string) (bool, error) { return true, nil }
	return w
}

// headAt returns a Git service at which the pull request's head is a commit of a branch of the
// repository; forkAt, of a fork.
func (w *env) headAt(sha string) func(*v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
	return w.headIn("https://git.example/acme/app", 5, sha)
}

func (w *env) forkAt(sha string) func(*v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
	return w.headIn("https://git.example/fork/app", 99, sha)
}

func (w *env) headIn(url string, project int64,
	sha string) func(*v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
	return func(e *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
		e.SHA, e.BaseRef, e.HeadRef, e.HeadURL, e.PullRequest.HeadProjectID = sha, "main", "topic", url, project
		return e, nil
	}
}

func TestCommentStartsOnlyMatchingPipelines(t *testing.T) {
	t.Parallel()
	deploy := annotated("deploy", `on-comment: '(?m)^/deploy (\w+)'`)
	deploy.Data = []byte(strings.Replace(string(deploy.Data), "spec:\n",
		"spec:\n  params:\n    - {name: said, value: '{{ trigger_comment }}'}\n", 1))
	w := commented(t, "please\r\n/deploy prod\n", deploy, helloFile("hello"), annotated("other", "on-comment: ^/other"),
		annotated("elsewhere", "on-comment: deploy", "target-namespace: prod"))
	w.git.skipCI = true // who comments asks for it now
	w.git.complete = w.headIn("https://git.example/fork/app", 5, sha)
	w.settle(corev1.ConditionTrue)
	runs := w.runs()
	if len(runs) != 1 || len(w.git.checks) != 1 || w.git.checks["1"].Conclusion != status.Success {
		t.Fatalf("%d runs, checks %v, reasons %v: want deploy only", len(runs), w.git.checks, w.reasons())
	}
	if got, want := runs[0].Spec.Params[0].Value.StringVal, `please\n/deploy prod\n`; got != want {
		t.Errorf("trigger_comment is %q, want %q", got, want)
	}
	for name, want := range map[string]string{
		pipelinesascode.SHA: sha, pipelinesascode.EventType: "on-comment", pipelinesascode.Sender: "member",
		pipelinesascode.Branch:       "main",
		pipelinesascode.SourceBranch: "topic", pipelinesascode.SourceRepoURL: "https://git.example/fork/app",
		pipelinesascode.PullRequest: "3",
	} {
		if got := runs[0].Annotations[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	e := w.event()
	if e.Spec.SHA != "" || e.Spec.HeadRef != "" || e.Spec.Comment.Body != "" || e.Status.Plan.HeadSHA != sha {
		t.Errorf("the record must stay what was received: %+v", e.Spec)
	}
	want := map[string]string{
		"deploy":    `selected: on-comment "(?m)^/deploy (\\w+)" matches the comment "please …"`,
		"hello":     "the event is a comment, and there is no annotation on-comment",
		"other":     `on-comment "^/other" does not match the comment "please …"`,
		"elsewhere": `target-namespace is "prod" and the Repository of this URL is in "team"`,
	}
	for name, reason := range w.reasons() {
		if reason != want[name] {
			t.Errorf("%s: %q, want %q", name, reason, want[name])
		}
	}
}

func TestCommentOfUnauthorizedUserRunsNothing(t *testing.T) {
	t.Parallel()
	no := func(users ...string) func(string) (bool, error) {
		return func(user string) (bool, error) { return !strings.Contains(strings.Join(users, " "), user), nil }
	}
	tests := map[string]struct {
		canWrite func(string) (bool, error)
		complete error
		reason   string // "" is a wait
	}{
		"a stranger's comment": {canWrite: no("member"),
			reason: "The author of the comment has no write access to this repository and is not in OWNERS."},
		"a member's comment on a stranger's fork": {canWrite: no("author"),
			reason: "The author of the pull request has no write access to this repository and is not in OWNERS."},
		"a look-up that fails is not an answer": {
			canWrite: func(string) (bool, error) { return false, fault.Transientf("Unavailable", "502") },
		},
		"a pull request that cannot be read is waited for": {
			canWrite: no(), complete: fault.Transientf("Unavailable", "502"),
		},
		"a pull request that was closed meanwhile": {
			canWrite: no(), complete: fault.Ignoredf("PullRequestClosed", "it is closed"), reason: "it is closed",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := commented(t, "/deploy", annotated("deploy", "on-comment: ^/deploy"))
			w.git.canWrite, w.git.complete = test.canWrite, w.forkAt(sha)
			w.edit(func(e *v1alpha1.GitEvent) {
				e.Labels = map[string]string{plumbline.SubjectLabel: e.Spec.Subject()}
			})
			if test.complete != nil {
				w.git.complete = func(*v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) { return nil, test.complete }
			}
			for range 4 {
				_, _ = w.reconcile()
			}
			read := slices.DeleteFunc(w.git.read, func(file string) bool { return file == defaultSHA+" OWNERS" }) // who else may
			if len(w.runs()) != 0 || len(w.git.writes) != 0 || w.secrets() != 1 || len(read) != 0 {
				t.Errorf("%d runs, writes %v, read %v: want nothing", len(w.runs()), w.git.writes, read)
			}
			e := w.event()
			if test.reason == "" && e.Status.Plan != nil || test.reason != "" &&
				(!e.Settled() || e.Status.Disposition != v1alpha1.DispositionIgnored || e.Status.Plan.Message != test.reason) {
				t.Errorf("%+v, want %q", e.Status, test.reason)
			}
			if subject := e.Labels[plumbline.SubjectLabel]; (subject == "") != (test.reason != "") {
				t.Errorf("it is found as one of subject %q; what did nothing is not in anybody's way, and what is open is", subject)
			}
		})
	}
}

// The head moves while one pipeline waits: that pipeline is planned at the commit that the others
// run.
func TestCommentIsPlannedAtOneCommit(t *testing.T) {
	t.Parallel()
	w := commented(t, "/deploy", annotated("now", "on-comment: ^/deploy"),
		annotated("later", "on-comment: ^/deploy", "task: https://git.example/t.yaml"))
	w.git.tree = map[string]string{"t.yaml": "apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: t}\nspec: {steps: [{name: s, image: busybox, script: x}]}\n"}
	w.git.errAt = fault.Transientf("Unavailable", "502")
	_, _ = w.reconcile()
	if runs := w.runs(); len(runs) != 1 {
		t.Fatalf("%d runs, want the one that needs not wait: %v", len(runs), w.reasons())
	}
	w.git.errAt, w.git.complete = nil, w.headAt(defaultSHA)
	w.settle(corev1.ConditionTrue)
	runs := w.runs()
	if len(runs) != 2 {
		t.Fatalf("%d runs, want 2: %v", len(runs), w.reasons())
	}
	for _, run := range runs {
		if got := run.Labels[pipelinesascode.SHA]; got != sha {
			t.Errorf("%s runs %s, want %s", run.Name, got, sha)
		}
	}
}

// The pull request's own event reports mistakes in definitions; each comment would repeat them. A
// comment reports an invalid pattern of on-comment, because only there it matters.
func TestCommentReportsOnlyOnCommentMistakes(t *testing.T) {
	t.Parallel()
	broken := git.File{Path: ".tekton/broken.yaml", Data: []byte("kind: PipelineRun\n  apiVersion: [")}
	w := commented(t, "/deploy", broken, annotated("deploy", "on-comment: '^/deploy('"),
		annotated("cel", "on-path-change: '{{ cel: 1 + }}'"),
		annotated("waits", "on-path-change: '{{ files.all[0] }}'"))
	w.git.changedErr = fault.Transientf("Unavailable", "502")
	w.settle(corev1.ConditionTrue)
	if len(w.git.checks) != 1 || len(w.runs()) != 0 || w.git.checks["1"].Conclusion != status.Failure ||
		!strings.Contains(w.git.checks["1"].Text, "missing closing )") {
		t.Errorf("checks %v, want one that shows what is wrong with the pattern", w.git.checks)
	}
}
