// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// acted is the event of a pull request that somebody has changed. A GitLab knows who that was.
func (w *world) acted(number int, action, by string) delivery {
	if w.git.kind() == gitLab {
		return w.git.pulled(number, action)
	}
	return w.forge.PullRequestDelivery(forge.PullEvent{Repo: repoName, Number: number, Action: action, Sender: by})
}

// changes pushes to the branch of a user's fork, as somebody, and returns the commit and the event
// of the pull request.
func (w *world) changes(owner string, number int, by string, change forge.Change) (string, delivery) {
	change.Author = by
	sha := w.git.commitFork(owner, change)
	return sha, w.acted(number, "synchronize", by)
}

// pushTo is changes of a file that says the text.
func (w *world) pushTo(owner string, number int, by, text string) (string, delivery) {
	return w.changes(owner, number, by, forge.Change{Files: map[string]string{"README": text}})
}

// labels sets a label on a pull request, as somebody, and returns the event.
func (w *world) labels(number int, by, label string) delivery {
	w.t.Helper()
	if g, ok := w.git.(*onGitLab); ok {
		g.SetLabels(projectName, int64(number), by, label)
		return g.MergeRequestDelivery(gitlab.MergeRequestEvent{Project: projectName, IID: int64(number)})
	}
	w.forge.LabelPull(repoName, number, label)
	return w.forge.PullRequestDelivery(forge.PullEvent{Repo: repoName, Number: number, Action: "labeled", Sender: by, Label: label})
}

// reopens closes a pull request and opens it again, as somebody, and returns the event.
func (w *world) reopens(number int, by string) delivery {
	w.t.Helper()
	if g, ok := w.git.(*onGitLab); ok {
		g.CloseMergeRequest(projectName, int64(number), by)
		g.ReopenMergeRequest(projectName, int64(number), by)
	} else {
		w.forge.ClosePull(repoName, number)
		w.forge.ReopenPull(repoName, number)
	}
	return w.acted(number, "reopened", by)
}

// settledOf waits until the event of a delivery is settled, and returns it.
func (w *world) settledOf(d delivery) (event v1alpha1.GitEvent) {
	w.t.Helper()
	w.eventually(soon, "the event is settled", func() error {
		if event = w.recordOf(d); !event.Settled() {
			return fmt.Errorf("%+v", event.Status)
		}
		return nil
	})
	return event
}

// disposed waits until the event of a delivery is settled, and requires what became of it.
func (w *world) disposed(d delivery, want v1alpha1.Disposition, reason string) {
	w.t.Helper()
	if s := w.settledOf(d).Status; s.Disposition != want || s.Plan == nil || s.Plan.Reason != reason || s.Plan.Message == "" {
		w.t.Errorf("the event is %s with %+v, want %s because of %s", s.Disposition, s.Plan, want, reason)
	}
}

// S10: after each push of a stranger to the fork of a writer's pull request, and when a stranger
// opens it again, it waits for approval. What the writer pushes runs.
func TestS10AStrangersPushToAWritersForkWaits(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) {
		w.git.grant("writer", "write")
		number, first := w.forkPull("writer")
		w.deliver(w.opened(number), http.StatusAccepted)
		w.checkReaches(first, checkName("pr"), "success", soon)
		theirs, pushed := w.pushTo("writer", number, "stranger", "theirs")
		w.deliver(pushed, http.StatusAccepted)
		if check := w.checkReaches(theirs, application, "queued", soon); !strings.Contains(check.Title, "Pending approval") {
			t.Errorf("the check says %q, want Pending approval", check.Title)
		}
		again, pushed := w.pushTo("writer", number, "stranger", "theirs again")
		w.deliver(pushed, http.StatusAccepted)
		w.pends(pushed) // the check of the same pull request comes a minute later (S7)
		opened := w.reopens(number, "writer")
		w.deliver(opened, http.StatusAccepted)
		w.pends(opened) // to open it again is not to have read it
		if runs := w.runs(); len(runs) != 1 {
			t.Errorf("%d PipelineRuns, want the writer's", len(runs))
		}
		mine, pushed := w.pushTo("writer", number, "writer", "mine")
		w.deliver(pushed, http.StatusAccepted)
		w.checkReaches(mine, checkName("pr"), "success", soon)
		reopened := w.reopens(number, "stranger")
		w.deliver(reopened, http.StatusAccepted)
		w.pends(reopened)
		w.neverFailed(theirs)
		w.neverFailed(again)
		if runs := w.runs(); len(runs) != 2 {
			t.Errorf("%d PipelineRuns, want the writer's two", len(runs))
		}
	})
}

// pends waits until it is decided that the delivery's event waits for approval.
func (w *world) pends(d delivery) {
	w.t.Helper()
	w.eventually(soon, "the event waits for approval", func() error {
		if d := w.recordOf(d).Status.Disposition; d != v1alpha1.DispositionPending {
			return fmt.Errorf("it is %q", d)
		}
		return nil
	})
}

// S10: the label of somebody who may not push starts nothing and tells nothing, on a branch of the
// repository itself too.
func TestS10AStrangersLabelStartsNothing(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) {
		w.git.grant("writer", "write")
		w.git.grant("reader", "read")
		w.git.commit("main", forge.Change{Files: map[string]string{
			".tekton/label.yaml": pipeline("label", "pull_request", `pipelinesascode.tekton.dev/on-label: "[ready, again]"`),
		}})
		head := w.git.commit("topic", forge.Change{Files: map[string]string{"a": "b"}})
		number := w.git.open("", "topic", "writer")
		for _, who := range []string{"reader", "nobody"} {
			labelled := w.labels(number, who, "ready")
			w.deliver(labelled, http.StatusAccepted)
			w.disposed(labelled, v1alpha1.DispositionIgnored, "NotApproved")
			w.labels(number, "writer", "none")
		}
		if runs, writes := w.runs(), w.writes(head, ""); len(runs) != 0 || len(writes) != 0 {
			t.Errorf("%d PipelineRuns and %d reports, want none", len(runs), len(writes))
		}
		w.deliver(w.labels(number, "writer", "again"), http.StatusAccepted)
		w.checkReaches(head, checkName("label"), "success", soon)
		w.settled(soon)
		if runs := w.runs(); len(runs) != 1 {
			t.Errorf("%d PipelineRuns, want the one of the writer's label", len(runs))
		}
	})
}

// forgery is a delivery with the right token and a body that is not GitLab's.
func (w *world) forgery(d delivery, key string, pairs ...string) delivery {
	w.t.Helper()
	_, body := partsOf(d)
	for i := 0; i < len(pairs); i += 2 {
		if !bytes.Contains(body, []byte(pairs[i])) {
			w.t.Fatalf("the body has no %s", pairs[i])
		}
		body = bytes.ReplaceAll(body, []byte(pairs[i]), []byte(pairs[i+1]))
	}
	if !json.Valid(body) {
		w.t.Fatalf("no JSON: %s", body)
	}
	forged := w.git.signed(d, body, hookSecret).(gitlab.Delivery)
	forged.Key, forged.Header = key, forged.Header.Clone()
	forged.Header.Set("Idempotency-Key", key)
	return forged
}

// S11: whoever knows the token can send what they like. Nothing of it starts a run or is told to
// anybody, and what is true runs.
func TestS11AForgedBodyStartsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{service: gitLab, receivers: 1, controllers: 1})
	w.claimed()
	g := w.git.(*onGitLab)
	files := map[string]string{
		".tekton/pr.yaml": pipeline("pr", "pull_request"), ".tekton/push.yaml": pipeline("push", "push"),
		".tekton/tag.yaml": strings.Replace(pipeline("tag", "push"), `[main]`, `[refs/tags/*]`, 1),
	}
	w.git.commit("main", forge.Change{Files: files, Message: "base"})
	w.git.grant("writer", "write")
	number, evil := w.forkPull("stranger")
	opened := w.opened(number)
	own := w.git.commit("topic", forge.Change{Files: map[string]string{"a": "b"}, Author: "writer"})
	theirs := w.git.open("", "topic", "writer")
	onMain := w.git.commit("main", forge.Change{Files: map[string]string{"c": "d"}, Message: "main"})
	w.git.point("refs/tags/v1", onMain)
	push, tag := w.git.pushed("refs/heads/main"), w.git.pushed("refs/tags/v1")
	user := func(name string) string { return fmt.Sprint(g.AddUser(name).ID) }
	ours, fork := fmt.Sprint(g.repo.ID), fmt.Sprint(g.forks["stranger"].ID)

	ignored := map[string]delivery{
		"a stranger's merge request in a writer's name": w.forgery(opened, "forged-author",
			`"author_id":`+user("stranger"), `"author_id":`+user("writer")),
		"a fork's in the place of a branch": w.forgery(opened, "forged-source", `"source_project_id":`+fork, `"source_project_id":`+ours),
	}
	waiting := map[string]delivery{
		"a stranger's commit on a writer's merge request": w.forgery(w.opened(theirs), "forged-head", own, evil),
		"a stranger's commit on main":                     w.forgery(push, "forged-push", onMain, evil),
		"a stranger's commit as a tag":                    w.forgery(tag, "forged-tag", onMain, evil),
		"a tag that does not exist":                       w.forgery(tag, "forged-name", "refs/tags/v1", "refs/tags/v2"),
	}
	for name, d := range ignored {
		w.deliver(d, http.StatusAccepted)
		w.disposed(d, v1alpha1.DispositionIgnored, "NotTrue")
		t.Log(name)
	}
	for name, d := range waiting {
		w.deliver(d, http.StatusAccepted)
		w.eventually(soon, name, func() error {
			s := w.recordOf(d).Status
			if len(s.Waits) == 1 && s.Waits[0].Reason == "NotConfirmed" && s.Disposition == "" {
				return nil
			}
			return fmt.Errorf("%+v", s)
		})
	}
	if runs, secrets := w.runs(), w.secrets(); len(runs) != 0 || secrets != 0 || len(g.Writes()) != 0 {
		t.Fatalf("%d PipelineRuns, %d secrets and %d reports, want none", len(runs), secrets, len(g.Writes()))
	}
	w.deliver(push, http.StatusAccepted)
	w.deliver(tag, http.StatusAccepted)
	w.deliver(w.opened(theirs), http.StatusAccepted)
	w.checkReaches(onMain, checkName("push"), "success", soon)
	w.checkReaches(onMain, checkName("tag"), "success", soon)
	w.checkReaches(own, checkName("pr"), "success", soon)
	if got := w.runsBySHA(); len(w.runs()) != 3 || got[evil] != 0 {
		t.Errorf("PipelineRuns by commit: %v, want none of %s", got, evil)
	}
	if writes := w.writes(evil, ""); len(writes) != 0 {
		t.Errorf("the stranger's commit was told %+v", writes)
	}
}
