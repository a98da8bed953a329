// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// overtaken is a branch with A on it, whose .tekton cannot be read, and B that is pushed in its place.
type overtaken struct {
	branch string
	event  string // what the pipelines are for
	// deliver makes the delivery of the branch's head of the moment.
	deliver func(w *world, action string) forge.Delivery
}

func replacements() map[string]overtaken {
	number := 0
	return map[string]overtaken{
		"push": {"main", "push", func(w *world, _ string) forge.Delivery { return w.again() }},
		"pull": {"topic", "pull_request", func(w *world, action string) forge.Delivery {
			if action == "opened" {
				w.forge.SetCollaborator(repoName, "dev", "write")
				number = w.forge.OpenPullRequest(forge.NewPull{Base: repoName, HeadBranch: "topic", Author: "dev"})
			}
			return w.forge.PullRequestDelivery(forge.PullEvent{Repo: repoName, Number: number, Action: action})
		}},
	}
}

// B11: a force-push replaces A by B while A waits for its .tekton: A is superseded by B although nothing of A can be
// read yet, without run and without check, and B runs.
func TestB11SupersededWhileItWaitsForItsPlan(t *testing.T) {
	t.Parallel()
	for name, r := range replacements() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{receivers: 1, controllers: 1})
			w.claimed()
			base := w.forge.Commit(repoName, "main", forge.Change{Files: map[string]string{"x": "base"}, Message: "base"})
			a, fault := w.unreadable(r, "a")
			first := r.deliver(w, "opened")
			w.deliver(first, http.StatusAccepted)
			w.hit(fault, 2)

			b := w.forge.Commit(repoName, r.branch, forge.Change{Parent: base, Files: map[string]string{".tekton/run.yaml": pipeline("b", r.event)}, Message: "b"})
			second := r.deliver(w, "synchronize")
			w.deliver(second, http.StatusAccepted)
			w.checkReaches(b, checkName("b"), "success", afterFault)
			w.settled(afterFault)
			event := w.recordOf(first)
			if event.Status.Disposition != v1alpha1.DispositionSuperseded || planOf(event).Message != "superseded by "+b {
				t.Errorf("A is %s, %q, want it superseded by %s", event.Status.Disposition, planOf(event).Message, b)
			}
			w.untold(a)
			w.started("b")
			if status, body, err := w.forge.Redeliver(w.ctx, first.GUID); err != nil || status/100 != 2 {
				t.Errorf("a redelivery of A is answered %d %s, %v", status, body, err)
			}
			if events := w.events(); len(events) != 2 {
				t.Errorf("%d GitEvents after a redelivery of A, want the two", len(events))
			}
			w.invariants()
		})
	}
}

// unreadable commits a pipeline of that name, whose directory cannot be read.
func (w *world) unreadable(r overtaken, name string) (string, *forge.FaultHandle) {
	sha := w.forge.Commit(repoName, r.branch, forge.Change{Files: map[string]string{".tekton/run.yaml": pipeline(name, r.event)}, Message: name})
	return sha, w.forge.Inject(forge.Fault{
		Route: forge.RouteTree, Do: forge.ServerError502HTML(), Match: func(r *http.Request) bool { return strings.Contains(r.URL.Path, sha) },
	})
}

// B11, the other way: A waits and B is pushed on top of it; or what supersedes A cannot be told; or A's branch is
// deleted: A is not superseded and runs when it can.
func TestB11NotSuperseded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	push := replacements()["push"]
	a, fault := w.unreadable(push, "a")
	w.deliver(w.again(), http.StatusAccepted)
	w.hit(fault, 2)
	b, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("b", "push")})
	w.deliver(delivery, http.StatusAccepted)
	w.checkReaches(b, checkName("b"), "success", afterFault)
	fault.Remove()
	w.checkReaches(a, checkName("a"), "success", afterFault)

	c, fault := w.unreadable(push, "c")
	unknown := w.forge.Inject(forge.Fault{Route: forge.RouteRef, Do: forge.ServerError502HTML()})
	w.deliver(w.again(), http.StatusAccepted)
	w.hit(unknown, 2)
	w.forge.Commit(repoName, "main", forge.Change{Parent: b, Files: map[string]string{"x": "y"}, Message: "instead"})
	w.untold(c)
	w.forge.SetBranch(repoName, "main", c, "octocat") // taken back before anybody could tell
	fault.Remove()
	unknown.Remove()
	w.checkReaches(c, checkName("c"), "success", afterFault)

	file := strings.ReplaceAll(pipeline("d", "push"), "[main]", "[topic]")
	d := w.forge.Commit(repoName, "topic", forge.Change{Files: map[string]string{".tekton/run.yaml": file}, Message: "d"})
	fault = w.forge.Inject(forge.Fault{Route: forge.RouteTree, Do: forge.ServerError502HTML()})
	w.deliver(w.forge.PushDelivery(forge.PushEvent{Repo: repoName, Ref: "refs/heads/topic"}), http.StatusAccepted)
	w.hit(fault, 2)
	w.forge.DeleteBranch(repoName, "topic", "octocat")
	fault.Remove()
	w.checkReaches(d, checkName("d"), "success", afterFault)
	w.settled(afterFault)
	w.started("a", "b", "c", "d")
	w.invariants()
}

// B11: a force-push replaces A by B while one of A's two runs exists and the other waits to be created: the first goes
// on to its own end, the other is never created and its check is cancelled, "superseded by B"; B runs.
func TestB11SupersededWhileARunWaitsToBeCreated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1, proxied: true})
	w.claimed()
	base := w.forge.Commit(repoName, "main", forge.Change{Files: map[string]string{"x": "base"}, Message: "base"})
	w.controller().Proxy.Add(cluster.Rule{
		Match: func(c cluster.Call) bool { return isCreate(c) && strings.HasPrefix(c.Name, "waits") },
		Do:    cluster.Fault(cluster.WebhookRefused()),
	})
	a, first := w.push(map[string]string{".tekton/a.yaml": pipeline("exists", "push", held), ".tekton/b.yaml": pipeline("waits", "push")})
	w.deliver(first, http.StatusAccepted)
	w.waits(a, "create/waits")
	w.checkReaches(a, checkName("waits"), "queued", soon)
	w.checkReaches(a, checkName("exists"), "in_progress", soon)

	b := w.forge.Commit(repoName, "main", forge.Change{Parent: base, Files: map[string]string{".tekton/b.yaml": pipeline("b", "push")}, Message: "b"})
	w.deliver(w.again(), http.StatusAccepted)
	w.checkReaches(b, checkName("b"), "success", afterFault)
	check := w.checkReaches(a, checkName("waits"), "cancelled", afterFault)
	if !strings.Contains(check.Text, "superseded by "+b) {
		t.Errorf("the check does not say why: %s", check.Text)
	}
	if check, _ := w.forge.Current(repoName, a, checkName("exists")); check.Status != "in_progress" {
		t.Errorf("the check of the run that exists is %s/%s, want it in progress", check.Status, check.Conclusion)
	}
	event := w.recordOf(first)
	w.release(&v1alpha1.GitEvent{Status: v1alpha1.GitEventStatus{Runs: event.Status.Runs[:1]}})
	w.checkReaches(a, checkName("exists"), "success", afterFault)
	w.settled(afterFault)
	w.neverFailed(a)
	w.oneCheck(a, checkName("waits"))
	w.started("b", "exists")
	if secrets := w.secrets(); secrets != 0 {
		t.Errorf("%d secrets are left in the end, want none", secrets)
	}
	w.invariants()
}
