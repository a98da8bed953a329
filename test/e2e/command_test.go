// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// commands is the delivery of a comment that a user has just written on a pull request.
func (w *world) commands(number int, user, body string) delivery {
	if g, isGitLab := w.git.(*onGitLab); isGitLab {
		g.AddUser(user)
		return g.NoteDelivery(g.AddNote(projectName, int64(number), user, body))
	}
	return w.forge.CommentDelivery(forge.CommentEvent{Repo: repoName, ID: w.forge.Comment(repoName, number, user, body)})
}

// changed is the delivery of a comment that its author has edited.
func (w *world) changed(number int, user, body string) delivery {
	if g, isGitLab := w.git.(*onGitLab); isGitLab {
		d := g.NoteDelivery(g.AddNote(projectName, int64(number), user, body))
		d.Body = []byte(strings.Replace(string(d.Body), `"action":"create"`, `"action":"update"`, 1))
		return d
	}
	return w.forge.CommentDelivery(forge.CommentEvent{Repo: repoName, ID: w.forge.Comment(repoName, number, user, body), Action: "edited"})
}

// commanded delivers a comment, waits until its event is over, and returns that.
func (w *world) commanded(number int, user, body string) v1alpha1.GitEvent {
	w.t.Helper()
	d := w.commands(number, user, body)
	w.deliver(d, http.StatusAccepted)
	return w.settledOf(d)
}

// ran are the runs of an event by pipeline, each with the event type and the param "version" that
// its PipelineRun has.
func (w *world) ran(event v1alpha1.GitEvent) string {
	w.t.Helper()
	var all []string
	for _, run := range event.Status.Runs {
		made := w.run(run.Name)
		version := ""
		for _, param := range made.Spec.Params {
			if param.Name == "version" {
				version = param.Value.StringVal
			}
		}
		all = append(all, fmt.Sprintf("%s %s %s", run.Pipeline, made.Labels[pipelinesascode.EventType], version))
	}
	return strings.Join(all, "; ")
}

// versioned shows the param "version".
func versioned(text string) string {
	return strings.Replace(text, "  params:\n", "  params:\n    - name: version\n      value: \"{{ version }}\"\n", 1)
}

// commandRow is a comment, the runs that it starts, and the reason and words of the plan.
type commandRow struct{ comment, want, reason, says string }

// commandRows are in an order: what /retest starts depends on what ran before.
func commandRows() []commandRow {
	return []commandRow{
		{"please\n\n/test\n", "build test-all-comment 1", "Selected", ""},
		{"/test manual build version=\"2 3\"", "build test-comment 2 3; manual test-comment 2 3", "Selected", ""},
		{"/test biuld", "", "UnknownName", "(All: build, deploy, manual, push)"},
		{"/test build\n/cancel", "", "ContradictoryCommands", "two different commands"},
		// S19
		{"/test build other=1", "", "BadArgument", "Those that can be set: version"},
		{"/test build key=mine", "", "BadArgument", "key has its value from a secret"},
		{"/test build revision=main", "", "BadArgument", "revision is a variable of Plumbline's own"},
		{"/test build git_auth_secret=mine", "", "BadArgument", "git_auth_secret is a variable of Plumbline's own"},
		{"/test build version=\"2\t3\"", "", "MalformedCommand", "the value of version has control characters"},
		{"/ok-to-test version=2", "", "MalformedCommand", "ok-to-test takes no arguments"},
		// S18
		{"> /test\n\nno", "", "NoMatch", ""},
		{"> somebody said\n/test", "", "NoMatch", ""},
		{"```\n/test\n```", "", "NoMatch", ""},
		{"<pre>\n/test\n</pre>", "", "NoMatch", ""},
		{"<!--\n/test\n-->", "", "NoMatch", ""},
		{"<!-- /test --> /test", "", "NoMatch", ""},

		{"/retest", "", "NothingToRetest", "a command that names one starts it"},
		{"/retest manual version=4", "manual retest-comment 4", "Selected", ""},
		{"/deploy staging", "deploy on-comment 1", "Selected", ""},
	}
}

// The rows of the commands that start pipelines, in one world for each service.
func TestCommandsStartPipelines(t *testing.T) {
	t.Parallel()
	forBothServices(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) {
		w.parameter(`[{"name":"version","value":"1"},{"name":"key","secret_ref":{"name":"keys","key":"key"}}]`)
		w.git.grant("member", "write")
		w.git.grant("other", "write")
		w.git.commit("main", forge.Change{Files: map[string]string{".tekton/push.yaml": pipeline("push", "push")}})
		sha := w.git.commit("topic", forge.Change{Author: "member", Message: "a change [skip ci]", Files: map[string]string{
			".tekton/build.yaml": versioned(pipeline("build", "pull_request")), ".tekton/manual.yaml": versioned(pipeline("manual", "none")),
			".tekton/deploy.yaml": versioned(pipeline("deploy", "none", "pipelinesascode.tekton.dev/on-comment: '^/deploy'")),
		}})
		number := w.git.open("", "topic", "member")
		w.deliver(w.opened(number), http.StatusAccepted)
		w.checkReaches(sha, application, "skipped", soon)
		w.settled(soon)
		if runs := w.runs(); len(runs) != 0 {
			t.Errorf("%d runs of a commit that asks for none", len(runs))
		}
		for _, row := range commandRows() {
			event := w.commanded(number, "other", row.comment) // the author could not approve
			if got := w.ran(event); got != row.want || event.Status.Plan.Reason != row.reason || !strings.Contains(event.Status.Plan.Message, row.says) || event.Status.Plan.HeadSHA != sha {
				t.Errorf("%q: runs %q, plan %+v, want %q because of %s", row.comment, got, event.Status.Plan, row.want, row.reason)
			}
		}
		w.checkReaches(sha, checkName("build"), "success", soon)
		again := w.commands(number, "member", "/test build")
		w.deliver(again, http.StatusAccepted)
		w.deliver(again, http.StatusAccepted)
		w.settled(soon)
		w.deliver(again, http.StatusAccepted)
		w.settled(soon)
		w.oneOf(again)
		w.deliver(w.changed(number, "member", "/test build"), http.StatusOK)
		w.settings(`{"gitops_command_prefix":"my ci"}`, "False BadCommandPrefix", "/ci test")
		if event := w.commanded(number, "member", "/test build"); event.Status.Plan.Reason != "NoMatch" {
			t.Errorf("without a prefix that can be used: %+v", event.Status.Plan)
		}
		w.settings(`{"gitops_command_prefix":"/ci"}`, "True NoProblem", "")
		if got := w.ran(w.commanded(number, "member", "/ci test manual")); got != "manual test-comment 1" {
			t.Errorf("with the prefix: %q", got)
		}
		w.strangersCommand(number, "build")
		w.started("build", "build", "build", "deploy", "manual", "manual", "manual")
		w.neverFailed(sha)
	})
}

// strangersCommand requires that a stranger's command costs two calls, none of them for .tekton,
// and leaves nothing (S17): one for the right to write, and one for whether there is an OWNERS
// file.
func (w *world) strangersCommand(number int, name string) {
	w.t.Helper()
	before := len(w.git.log().requests)
	checks := len(w.git.log().writes)
	event := w.commanded(number, "eve", "/ci test "+name)
	if event.Status.Plan.Reason != "NotApproved" || event.Status.Disposition != v1alpha1.DispositionIgnored || len(event.Status.Runs) != 0 {
		w.t.Errorf("a stranger's command: %+v", event.Status)
	}
	var calls []string
	for _, request := range w.git.log().requests[before:] {
		calls = append(calls, request.Method+" "+request.Path)
	}
	if len(calls) > 2 || strings.Contains(strings.Join(calls, " "), "tekton") {
		w.t.Errorf("a stranger's command costs %q", calls)
	}
	if writes := w.git.log().writes[checks:]; len(writes) != 0 {
		w.t.Errorf("a stranger's command leaves %+v", writes)
	}
}
