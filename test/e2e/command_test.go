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

// comment returns the delivery of a comment that a user has just written on a pull request.
func (env *environment) comment(number int, user, body string) delivery {
	if g, isGitLab := env.git.(*onGitLab); isGitLab {
		g.AddUser(user)
		return g.NoteDelivery(g.AddNote(projectName, int64(number), user, body))
	}
	return env.forge.CommentDelivery(forge.CommentEvent{
		Repo: repoName, ID: env.forge.Comment(repoName, number, user, body),
	})
}

// editComment returns the delivery of a comment that its author has edited.
func (env *environment) editComment(number int, user, body string) delivery {
	return env.changeComment(number, user, body, "edited", "update")
}

// changeComment returns the delivery of what happened to a comment, as each Git service names it.
func (env *environment) changeComment(number int, user, body, gitHubAction, gitLabAction string) delivery {
	if g, isGitLab := env.git.(*onGitLab); isGitLab {
		d := g.NoteDelivery(g.AddNote(projectName, int64(number), user, body))
		d.Body = []byte(strings.Replace(string(d.Body), `"action":"create"`, `"action":"`+gitLabAction+`"`, 1))
		return d
	}
	return env.forge.CommentDelivery(forge.CommentEvent{
		Repo: repoName, ID: env.forge.Comment(repoName, number, user, body), Action: gitHubAction,
	})
}

// runCommand delivers a comment, waits until its event is settled, and returns the event.
func (env *environment) runCommand(number int, user, body string) v1alpha1.GitEvent {
	env.t.Helper()
	return env.deliverAndSettle(env.comment(number, user, body))
}

// deliverAndSettle delivers, waits until the event is settled, and returns the event.
func (env *environment) deliverAndSettle(d delivery) v1alpha1.GitEvent {
	env.t.Helper()
	env.deliver(d, http.StatusAccepted)
	return env.awaitSettledDelivery(d)
}

// describeRuns lists the runs of an event by pipeline, each with the event type and the param
// "version" of its PipelineRun.
func (env *environment) describeRuns(event v1alpha1.GitEvent) string {
	env.t.Helper()
	var all []string
	for _, run := range event.Status.Runs {
		made := env.getRun(run.Name)
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

// withVersionParam uses the param "version" in a definition.
func withVersionParam(text string) string {
	return strings.Replace(text, "  params:\n", "  params:\n    - name: version\n      value: \"{{ version }}\"\n", 1)
}

// commandRow is a comment, the runs that it starts, and the reason and words of the plan.
type commandRow struct{ comment, want, reason, says string }

// commandRows must run in this order: what /retest starts depends on what ran before.
func commandRows() []commandRow {
	return []commandRow{
		{"please\n\n/test\n", "build test-all-comment 1", "Selected", ""},
		{"/test manual build version=\"2 3\"", "build test-comment 2 3; manual test-comment 2 3", "Selected", ""},
		{"/test biuld", "", "UnknownName", "(All: build, deploy, manual, push)"},
		{"/test build\n/cancel", "", "ContradictoryCommands", "two different commands"},
		// S19
		{"/test build other=1", "", "BadArgument", "Those that can be set: version"},
		{"/test build key=mine", "", "BadArgument", "key gets its value from a secret"},
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

// Commands in comments start the pipelines that they name. All rows run in one environment for
// each service.
func TestCommandsStartPipelines(t *testing.T) {
	forBothServices(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, env *environment) {
		env.setParams(`[{"name":"version","value":"1"},{"name":"key","secret_ref":{"name":"keys","key":"key"}}]`)
		env.git.grant("member", "write")
		env.git.grant("other", "write")
		env.git.commit("main", forge.Change{Files: map[string]string{".tekton/push.yaml": pipeline("push", "push")}})
		sha := env.git.commit("topic", forge.Change{Author: "member", Message: "a change [skip ci]", Files: map[string]string{
			".tekton/build.yaml":  withVersionParam(pipeline("build", "pull_request")),
			".tekton/manual.yaml": withVersionParam(pipeline("manual", "none")),
			".tekton/deploy.yaml": withVersionParam(pipeline("deploy", "none",
				"pipelinesascode.tekton.dev/on-comment: '^/deploy'")),
		}})
		number := env.git.open("", "topic", "member")
		env.deliver(env.opened(number), http.StatusAccepted)
		env.awaitCheck(sha, application, "skipped", soon)
		env.awaitAllSettled(soon)
		env.requireRunCount(0)
		for _, row := range commandRows() {
			event := env.runCommand(number, "other", row.comment) // the author may not approve
			equal(t, row.comment+": the runs", env.describeRuns(event), row.want)
			requirePlan(t, row.comment, event, v1alpha1.Plan{Reason: row.reason, Message: row.says, HeadSHA: sha})
		}
		env.awaitCheck(sha, checkName("build"), "success", soon)
		again := env.comment(number, "member", "/test build")
		env.deliver(again, http.StatusAccepted)
		env.deliver(again, http.StatusAccepted)
		env.awaitAllSettled(soon)
		env.deliver(again, http.StatusAccepted)
		env.awaitAllSettled(soon)
		env.requireOneRun(again)
		env.deliver(env.editComment(number, "member", "/test build"), http.StatusOK)
		env.patchSettings(`{"gitops_command_prefix":"my ci"}`, "False BadCommandPrefix", "/ci test")
		if event := env.runCommand(number, "member", "/test build"); event.Status.Plan.Reason != "NoMatch" {
			t.Errorf("without a prefix that can be used: %+v", event.Status.Plan)
		}
		env.patchSettings(`{"gitops_command_prefix":"/ci"}`, "True NoProblem", "")
		if got := env.describeRuns(env.runCommand(number, "member", "/ci test manual")); got != "manual test-comment 1" {
			t.Errorf("with the prefix: %q", got)
		}
		env.requireUntrustedCommandIgnored(number, "build")
		env.requireOnlyStarted("build", "build", "build", "deploy", "manual", "manual", "manual")
		env.requireNoFailure(sha)
	})
}

// requireUntrustedCommandIgnored requires that an untrusted user's command costs two calls and
// starts nothing (S17). The calls read the write permission and whether there is an OWNERS file;
// none reads .tekton.
func (env *environment) requireUntrustedCommandIgnored(number int, name string) {
	env.t.Helper()
	before := len(env.git.log().requests)
	checks := len(env.git.log().writes)
	event := env.runCommand(number, "eve", "/ci test "+name)
	if event.Status.Plan.Reason != "NotApproved" || event.Status.Disposition != v1alpha1.DispositionIgnored ||
		len(event.Status.Runs) != 0 {
		env.t.Errorf("an untrusted user's command: %+v", event.Status)
	}
	var calls []string
	for _, request := range env.git.log().requests[before:] {
		calls = append(calls, request.Method+" "+request.Path)
	}
	if len(calls) > 2 || strings.Contains(strings.Join(calls, " "), "tekton") {
		env.t.Errorf("an untrusted user's command costs %q", calls)
	}
	if writes := env.git.log().writes[checks:]; len(writes) != 0 {
		env.t.Errorf("an untrusted user's command leaves %+v", writes)
	}
}
