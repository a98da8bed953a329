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

// presses presses the re-run button of a check, or that of all checks of a commit for an empty
// name, and returns the event.
func (w *world) presses(sha, name, user string) forge.Delivery {
	w.t.Helper()
	e := forge.RerunEvent{Repo: repoName, SHA: sha, Sender: user}
	if name != "" {
		shown, found := w.current(sha, checkName(name))
		id, err := strconv.ParseInt(shown.ID, 10, 64)
		if !found || err != nil {
			w.t.Fatalf("the commit has no check %q: %+v", checkName(name), w.git.checks(sha))
		}
		e.CheckID = id
	}
	return w.forge.PressRerun(e)
}

// ofAnotherApp makes the check of a press, or all checks, those of another App. Nothing else of the
// delivery changes.
func (w *world) ofAnotherApp(d forge.Delivery) delivery {
	w.t.Helper()
	var payload map[string]any
	w.must(json.Unmarshal(d.Body, &payload))
	for _, of := range []string{"check_run", "check_suite"} {
		if check, found := payload[of].(map[string]any); found {
			check["app"] = map[string]any{"id": 8, "slug": "another"}
		}
	}
	body, err := json.Marshal(payload)
	w.must(err)
	return w.git.signed(d, body, "webhook-secret-of-the-test")
}

// A press of "Re-run" runs that one pipeline again, of the pull request or push that it was of,
// whatever its annotations say now and whatever was pushed since, and a new check takes the old
// one's place. One press is one set of runs, a second press a second one. "Re-run all checks" runs
// what did not succeed. S27: who may not write starts nothing, and a press at the check of another
// App, or at all of its checks, is ignored.
func TestACheckIsPressed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	w.git.grant("member", "write")
	w.git.commit("main", forge.Change{Files: map[string]string{"README": "1"}})
	files := map[string]string{".tekton/good.yaml": pipeline("good", "pull_request"), ".tekton/bad.yaml": pipeline("bad", "pull_request", fails), ".tekton/pushed.yaml": pipeline("pushed", "push")}
	sha := w.git.commit("topic", forge.Change{Files: files, Author: "member"})
	number := w.git.open("", "topic", "member")
	opened := w.opened(number)
	w.deliver(opened, http.StatusAccepted)
	w.checkReaches(sha, checkName("good"), "success", soon)
	before := w.checkReaches(sha, checkName("bad"), "failure", soon)
	w.settled(soon)
	for _, d := range []struct {
		delivery
		reason string
	}{
		{w.presses(sha, "bad", "eve"), "NotApproved"}, {w.presses(sha, "", "eve"), "NotApproved"},
		{w.ofAnotherApp(w.presses(sha, "bad", "member")), "AnotherApp"}, {w.ofAnotherApp(w.presses(sha, "", "member")), "AnotherApp"},
	} {
		w.deliver(d.delivery, http.StatusAccepted)
		w.disposed(d.delivery, v1alpha1.DispositionIgnored, d.reason)
	}
	w.started("bad", "good")
	w.git.commit("topic", forge.Change{Files: map[string]string{"README": "moved on"}, Author: "member"})

	one := w.presses(sha, "bad", "member")
	w.deliver(one, http.StatusAccepted)
	w.deliver(one, http.StatusAccepted)
	w.eventually(soon, "another check takes the place of the failed one", func() error {
		if now, _ := w.current(sha, checkName("bad")); now.ID == before.ID || now.Conclusion != "failure" {
			return fmt.Errorf("%+v", now)
		}
		return nil
	})
	w.settled(soon)
	w.started("bad", "bad", "good")
	record, first := w.recordOf(one), w.recordOf(opened)
	if record.Status.Ref != "#1" || record.Status.Plan.HeadSHA != sha || record.Labels[plumbline.SubjectLabel] != first.Labels[plumbline.SubjectLabel] {
		t.Errorf("the record is of %s at %s, labelled %v", record.Status.Ref, record.Status.Plan.HeadSHA, record.Labels)
	}
	for _, check := range w.git.checks(sha) {
		if check.ID == before.ID && (check.Conclusion != before.Conclusion || check.DetailsURL != before.DetailsURL) {
			t.Errorf("the check that was pressed was %+v and is %+v", before, check)
		}
	}
	w.deliver(w.presses(sha, "bad", "member"), http.StatusAccepted)
	w.deliver(w.presses(sha, "", "member"), http.StatusAccepted)
	w.settled(soon)
	if got := len(w.runs()); got < 4 || got > 5 { // the second of these finds the first one's run under way, or over
		t.Errorf("%d runs after a second press and one of all", got)
	}
	w.settled(soon)
	w.deliver(w.presses(sha, "", "member"), http.StatusAccepted)
	w.settled(soon)
	for _, run := range w.runs() {
		if run.Labels["pipelinesascode.tekton.dev/event-type"] != "pull_request" || run.Labels["pipelinesascode.tekton.dev/sha"] != sha {
			t.Errorf("run %s has the labels %v", run.Name, run.Labels)
		}
	}
	goods := 0
	for _, check := range w.git.checks(sha) {
		if check.Name == checkName("good") {
			goods++
		}
	}
	if goods != 1 {
		t.Errorf("%d checks of the pipeline that has succeeded, want 1", goods)
	}
	w.invariants()
}
