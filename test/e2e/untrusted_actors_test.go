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

// pullDeliveryBy returns the event of a pull request that a user has changed. A GitLab knows the
// user.
func (env *environment) pullDeliveryBy(number int, action, by string) delivery {
	if env.git.kind() == gitLab {
		return env.git.pulled(number, action)
	}
	return env.forge.PullRequestDelivery(forge.PullEvent{Repo: repoName, Number: number, Action: action, Sender: by})
}

// pushChange pushes to the branch of a user's fork, as another user, and returns the commit and
// the event of the pull request.
func (env *environment) pushChange(owner string, number int, by string, change forge.Change) (string, delivery) {
	change.Author = by
	sha := env.git.commitFork(owner, change)
	return sha, env.pullDeliveryBy(number, "synchronize", by)
}

// pushText is pushChange of a file with the text.
func (env *environment) pushText(owner string, number int, by, text string) (string, delivery) {
	return env.pushChange(owner, number, by, forge.Change{Files: map[string]string{"README": text}})
}

// addLabel sets a label on a pull request, as a user, and returns the event.
func (env *environment) addLabel(number int, by, label string) delivery {
	env.t.Helper()
	if g, ok := env.git.(*onGitLab); ok {
		g.SetLabels(projectName, int64(number), by, label)
		return g.MergeRequestDelivery(gitlab.MergeRequestEvent{Project: projectName, IID: int64(number)})
	}
	env.forge.LabelPull(repoName, number, label)
	return env.forge.PullRequestDelivery(forge.PullEvent{
		Repo: repoName, Number: number, Action: "labeled", Sender: by, Label: label,
	})
}

// reopen closes a pull request and opens it again, as a user, and returns the event.
func (env *environment) reopen(number int, by string) delivery {
	env.t.Helper()
	if g, ok := env.git.(*onGitLab); ok {
		g.CloseMergeRequest(projectName, int64(number), by)
		g.ReopenMergeRequest(projectName, int64(number), by)
	} else {
		env.forge.ClosePull(repoName, number)
		env.forge.ReopenPull(repoName, number)
	}
	return env.pullDeliveryBy(number, "reopened", by)
}

// awaitSettledDelivery waits until the event of a delivery is settled, and returns it.
func (env *environment) awaitSettledDelivery(d delivery) (event v1alpha1.GitEvent) {
	env.t.Helper()
	env.eventually(soon, "the event is settled", func() error {
		if event = env.recordOf(d); !event.Settled() {
			return fmt.Errorf("%+v", event.Status)
		}
		return nil
	})
	return event
}

// requireDisposition waits until the event of a delivery is settled, and requires its disposition.
func (env *environment) requireDisposition(d delivery, want v1alpha1.Disposition, reason string) {
	env.t.Helper()
	if s := env.awaitSettledDelivery(d).Status; s.Disposition != want || s.Plan == nil || s.Plan.Reason != reason ||
		s.Plan.Message == "" {
		env.t.Errorf("the event is %s with %+v, want %s because of %s", s.Disposition, s.Plan, want, reason)
	}
}

// S10: a writer's pull request waits for approval after each push of an untrusted user to its
// fork, and when an untrusted user reopens it. What the writer pushes runs.
func TestUntrustedPushToWritersForkWaits(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, env *environment) {
		env.git.grant("writer", "write")
		number, first := env.openForkPull("writer")
		env.deliver(env.opened(number), http.StatusAccepted)
		env.awaitCheck(first, checkName("pr"), "success", soon)
		theirs, pushed := env.pushText("writer", number, "stranger", "theirs")
		env.deliver(pushed, http.StatusAccepted)
		if check := env.awaitCheck(theirs, application, "queued", soon); !strings.Contains(check.Title, "Pending approval") {
			t.Errorf("the check says %q, want Pending approval", check.Title)
		}
		again, pushed := env.pushText("writer", number, "stranger", "theirs again")
		env.deliver(pushed, http.StatusAccepted)
		env.awaitPending(pushed) // the next check of the same pull request comes a minute later (S7)
		opened := env.reopen(number, "writer")
		env.deliver(opened, http.StatusAccepted)
		env.awaitPending(opened) // reopening is no review
		env.requireRunCount(1)
		mine, pushed := env.pushText("writer", number, "writer", "mine")
		env.deliver(pushed, http.StatusAccepted)
		env.awaitCheck(mine, checkName("pr"), "success", soon)
		reopened := env.reopen(number, "stranger")
		env.deliver(reopened, http.StatusAccepted)
		env.awaitPending(reopened)
		env.requireNoFailure(theirs)
		env.requireNoFailure(again)
		env.requireRunCount(2)
	})
}

// awaitPending waits until the delivery's event waits for approval.
func (env *environment) awaitPending(d delivery) {
	env.t.Helper()
	env.eventually(soon, "the event waits for approval", func() error {
		if d := env.recordOf(d).Status.Disposition; d != v1alpha1.DispositionPending {
			return fmt.Errorf("it is %q", d)
		}
		return nil
	})
}

// S10: a label of a user without write access starts nothing and reports nothing, also on a branch
// of the repository itself.
func TestUntrustedLabelStartsNothing(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, env *environment) {
		env.git.grant("writer", "write")
		env.git.grant("reader", "read")
		env.git.commit("main", forge.Change{Files: map[string]string{
			".tekton/label.yaml": pipeline("label", "pull_request", `pipelinesascode.tekton.dev/on-label: "[ready, again]"`),
		}})
		head := env.git.commit("topic", forge.Change{Files: map[string]string{"a": "b"}})
		number := env.git.open("", "topic", "writer")
		for _, who := range []string{"reader", "nobody"} {
			labelled := env.addLabel(number, who, "ready")
			env.deliver(labelled, http.StatusAccepted)
			env.requireDisposition(labelled, v1alpha1.DispositionIgnored, "NotApproved")
			env.addLabel(number, "writer", "none")
		}
		if runs, writes := env.runs(), env.checkWrites(head, ""); len(runs) != 0 || len(writes) != 0 {
			t.Errorf("%d PipelineRuns and %d reports, want none", len(runs), len(writes))
		}
		env.deliver(env.addLabel(number, "writer", "again"), http.StatusAccepted)
		env.awaitCheck(head, checkName("label"), "success", soon)
		env.awaitAllSettled(soon)
		env.requireRunCount(1)
	})
}

// forgeBody returns a delivery with the right token and a body that is not GitLab's.
func (env *environment) forgeBody(d delivery, key string, pairs ...string) delivery {
	env.t.Helper()
	_, body := partsOf(d)
	for i := 0; i < len(pairs); i += 2 {
		if !bytes.Contains(body, []byte(pairs[i])) {
			env.t.Fatalf("the body has no %s", pairs[i])
		}
		body = bytes.ReplaceAll(body, []byte(pairs[i]), []byte(pairs[i+1]))
	}
	if !json.Valid(body) {
		env.t.Fatalf("no JSON: %s", body)
	}
	forged := env.git.signed(d, body, hookSecret).(gitlab.Delivery)
	forged.Key, forged.Header = key, forged.Header.Clone()
	forged.Header.Set("Idempotency-Key", key)
	return forged
}

// S11: a sender who knows the token can send any body. A false body starts no run and no report,
// and a true one runs.
func TestForgedBodyStartsNothing(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t, setup{service: gitLab, receivers: 1, controllers: 1})
	g := env.git.(*onGitLab)
	files := map[string]string{
		".tekton/pr.yaml": pipeline("pr", "pull_request"), ".tekton/push.yaml": pipeline("push", "push"),
		".tekton/tag.yaml": strings.Replace(pipeline("tag", "push"), `[main]`, `[refs/tags/*]`, 1),
	}
	env.git.commit("main", forge.Change{Files: files, Message: "base"})
	env.git.grant("writer", "write")
	number, evil := env.openForkPull("stranger")
	opened := env.opened(number)
	own := env.git.commit("topic", forge.Change{Files: map[string]string{"a": "b"}, Author: "writer"})
	theirs := env.git.open("", "topic", "writer")
	onMain := env.git.commit("main", forge.Change{Files: map[string]string{"c": "d"}, Message: "main"})
	env.git.point("refs/tags/v1", onMain)
	push, tag := env.git.pushed("refs/heads/main"), env.git.pushed("refs/tags/v1")
	user := func(name string) string { return fmt.Sprint(g.AddUser(name).ID) }
	ours, fork := fmt.Sprint(g.repo.ID), fmt.Sprint(g.forks["stranger"].ID)

	ignored := map[string]delivery{
		"a stranger's merge request in a writer's name": env.forgeBody(opened, "forged-author",
			`"author_id":`+user("stranger"), `"author_id":`+user("writer")),
		"a fork's in the place of a branch": env.forgeBody(opened, "forged-source", `"source_project_id":`+fork,
			`"source_project_id":`+ours),
	}
	waiting := map[string]delivery{
		"a stranger's commit on a writer's merge request": env.forgeBody(env.opened(theirs), "forged-head", own, evil),
		"a stranger's commit on main":                     env.forgeBody(push, "forged-push", onMain, evil),
		"a stranger's commit as a tag":                    env.forgeBody(tag, "forged-tag", onMain, evil),
		"a tag that does not exist":                       env.forgeBody(tag, "forged-name", "refs/tags/v1", "refs/tags/v2"),
	}
	for name, d := range ignored {
		env.deliver(d, http.StatusAccepted)
		env.requireDisposition(d, v1alpha1.DispositionIgnored, "NotTrue")
		t.Log(name)
	}
	for name, d := range waiting {
		env.deliver(d, http.StatusAccepted)
		env.eventually(soon, name, func() error {
			s := env.recordOf(d).Status
			if len(s.Waits) == 1 && s.Waits[0].Reason == "NotConfirmed" && s.Disposition == "" {
				return nil
			}
			return fmt.Errorf("%+v", s)
		})
	}
	if runs, secrets := env.runs(), env.countSecrets(); len(runs) != 0 || secrets != 0 || len(g.Writes()) != 0 {
		t.Fatalf("%d PipelineRuns, %d secrets and %d reports, want none", len(runs), secrets, len(g.Writes()))
	}
	env.deliver(push, http.StatusAccepted)
	env.deliver(tag, http.StatusAccepted)
	env.deliver(env.opened(theirs), http.StatusAccepted)
	env.awaitCheck(onMain, checkName("push"), "success", soon)
	env.awaitCheck(onMain, checkName("tag"), "success", soon)
	env.awaitCheck(own, checkName("pr"), "success", soon)
	if got := env.runsBySHA(); len(env.runs()) != 3 || got[evil] != 0 {
		t.Errorf("PipelineRuns by commit: %v, want none of %s", got, evil)
	}
	if writes := env.checkWrites(evil, ""); len(writes) != 0 {
		t.Errorf("the untrusted user's commit got %+v", writes)
	}
}
