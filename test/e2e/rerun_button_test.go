// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// requestRerun clicks the re-run button of a check, or that of all checks of a commit for an empty
// name, and returns the event.
func (env *environment) requestRerun(sha, name, user string) forge.Delivery {
	env.t.Helper()
	e := forge.RerunEvent{Repo: repoName, SHA: sha, Sender: user}
	if name != "" {
		shown, found := env.currentCheck(sha, checkName(name))
		id, err := strconv.ParseInt(shown.ID, 10, 64)
		if !found || err != nil {
			env.t.Fatalf("the commit has no check %q: %+v", checkName(name), env.git.checks(sha))
		}
		e.CheckID = id
	}
	return env.forge.PressRerun(e)
}

// fromOtherApp makes the check of a re-run request, or all checks, those of another App. The rest
// of the delivery stays as it is.
func (env *environment) fromOtherApp(d forge.Delivery) delivery {
	env.t.Helper()
	var payload map[string]any
	env.must(json.Unmarshal(d.Body, &payload))
	for _, of := range []string{"check_run", "check_suite"} {
		if check, found := payload[of].(map[string]any); found {
			check["app"] = map[string]any{"id": 8, "slug": "another"}
		}
	}
	body, err := json.Marshal(payload)
	env.must(err)
	return env.git.signed(d, body, "webhook-secret-of-the-test")
}

// A click on "Re-run" runs that one pipeline again for the same pull request or push, whatever its
// annotations say now and whatever was pushed since. A new check takes the place of the old one.
// Each click starts one set of runs. "Re-run all checks" runs what did not succeed. S27: a user
// without write access starts nothing. A request for a check of another App, or for all its
// checks, is ignored.
func TestRerunButtonRunsPipeline(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1})
	env.git.grant("member", "write")
	env.git.commit("main", forge.Change{Files: map[string]string{"README": "1"}})
	files := map[string]string{".tekton/good.yaml": pipeline("good", "pull_request"),
		".tekton/bad.yaml": pipeline("bad", "pull_request", fails), ".tekton/pushed.yaml": pipeline("pushed", "push")}
	sha := env.git.commit("topic", forge.Change{Files: files, Author: "member"})
	number := env.git.open("", "topic", "member")
	opened := env.opened(number)
	env.deliver(opened, http.StatusAccepted)
	env.awaitCheck(sha, checkName("good"), "success", soon)
	before := env.awaitCheck(sha, checkName("bad"), "failure", soon)
	env.awaitAllSettled(soon)
	for _, d := range []struct {
		delivery
		reason string
	}{
		{env.requestRerun(sha, "bad", "eve"), "NotApproved"}, {env.requestRerun(sha, "", "eve"), "NotApproved"},
		{env.fromOtherApp(env.requestRerun(sha, "bad", "member")), "AnotherApp"},
		{env.fromOtherApp(env.requestRerun(sha, "", "member")), "AnotherApp"},
	} {
		env.deliver(d.delivery, http.StatusAccepted)
		env.requireDisposition(d.delivery, v1alpha1.DispositionIgnored, d.reason)
	}
	env.requireOnlyStarted("bad", "good")
	env.git.commit("topic", forge.Change{Files: map[string]string{"README": "moved on"}, Author: "member"})

	one := env.requestRerun(sha, "bad", "member")
	env.deliver(one, http.StatusAccepted)
	env.deliver(one, http.StatusAccepted)
	env.eventually(soon, "another check takes the place of the failed one", func() error {
		if now, _ := env.currentCheck(sha, checkName("bad")); now.ID == before.ID || now.Conclusion != "failure" {
			return fmt.Errorf("%+v", now)
		}
		return nil
	})
	env.awaitAllSettled(soon)
	env.requireOnlyStarted("bad", "bad", "good")
	record, first := env.recordOf(one), env.recordOf(opened)
	if record.Status.Ref != "#1" || record.Status.Plan.HeadSHA != sha ||
		record.Labels[plumbline.SubjectLabel] != first.Labels[plumbline.SubjectLabel] {
		t.Errorf("the record is of %s at %s, labelled %v", record.Status.Ref, record.Status.Plan.HeadSHA, record.Labels)
	}
	for _, check := range env.git.checks(sha) {
		if check.ID == before.ID && (check.Conclusion != before.Conclusion || check.DetailsURL != before.DetailsURL) {
			t.Errorf("the check that was pressed was %+v and is %+v", before, check)
		}
	}
	env.deliver(env.requestRerun(sha, "bad", "member"), http.StatusAccepted)
	env.deliver(env.requestRerun(sha, "", "member"), http.StatusAccepted)
	env.awaitAllSettled(soon)
	// the second request finds the run of the first one running or finished
	if got := len(env.runs()); got < 4 || got > 5 {
		t.Errorf("%d runs after a second press and one of all", got)
	}
	env.awaitAllSettled(soon)
	env.deliver(env.requestRerun(sha, "", "member"), http.StatusAccepted)
	env.awaitAllSettled(soon)
	for _, run := range env.runs() {
		if run.Labels["pipelinesascode.tekton.dev/event-type"] != "pull_request" ||
			run.Labels["pipelinesascode.tekton.dev/sha"] != sha {
			t.Errorf("run %s has the labels %v", run.Name, run.Labels)
		}
	}
	goods := 0
	for _, check := range env.git.checks(sha) {
		if check.Name == checkName("good") {
			goods++
		}
	}
	if goods != 1 {
		t.Errorf("%d checks of the pipeline that has succeeded, want 1", goods)
	}
	env.requireInvariants()
}
