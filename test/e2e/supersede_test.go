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
	deliver func(w *world, action string) delivery
}

func replacements() map[string]overtaken {
	number := 0
	return map[string]overtaken{
		"push": {"main", "push", func(w *world, _ string) delivery { return w.again() }},
		"pull": {"topic", "pull_request", func(w *world, action string) delivery {
			if action == "opened" {
				w.git.grant("dev", "write")
				number = w.git.open("", "topic", "dev")
			}
			return w.git.pulled(number, action)
		}},
	}
}

// B11: a force-push replaces A by B while A waits for its .tekton: A is superseded by B although nothing of A can be
// read yet, without run and without check, and B runs.
func TestB11SupersededWhileItWaitsForItsPlan(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	for _, name := range []string{"push", "pull"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) {
				isSupersededWhileItWaits(t, w, replacements()[name])
			})
		})
	}
}

func isSupersededWhileItWaits(t *testing.T, w *world, r overtaken) {
	base := w.git.commit("main", forge.Change{Files: map[string]string{"x": "base"}, Message: "base"})
	a, fault := w.unreadable(r, "a")
	first := r.deliver(w, "opened")
	w.deliver(first, http.StatusAccepted)
	w.hit(fault, 2)

	b := w.git.commit(r.branch, forge.Change{Parent: base, Files: map[string]string{".tekton/run.yaml": pipeline("b", r.event)}, Message: "b"})
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
	if status, body, err := w.git.redeliver(w.ctx, first.ID()); err != nil || status/100 != 2 {
		t.Errorf("a redelivery of A is answered %d %s, %v", status, body, err)
	}
	if events := w.events(); len(events) != 2 {
		t.Errorf("%d GitEvents after a redelivery of A, want the two", len(events))
	}
}

// unreadable commits a pipeline of that name, whose directory cannot be read.
func (w *world) unreadable(r overtaken, name string) (string, *forge.FaultHandle) {
	sha := w.git.commit(r.branch, forge.Change{Files: map[string]string{".tekton/run.yaml": pipeline(name, r.event)}, Message: name})
	return sha, w.git.inject(readDirectory, forge.Fault{
		Do: forge.ServerError502HTML(), Match: func(r *http.Request) bool { return strings.Contains(r.URL.Path+r.URL.RawQuery, sha) },
	})
}

// B11, the other way: A waits and B is pushed on top of it; or what supersedes A cannot be told; or A's branch is
// deleted: A is not superseded and runs when it can.
func TestB11NotSuperseded(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, isNotSuperseded)
}

func isNotSuperseded(t *testing.T, w *world) {
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
	unknown := w.git.inject(readBranch, forge.Fault{Do: forge.ServerError502HTML()})
	w.deliver(w.again(), http.StatusAccepted)
	w.hit(unknown, 2)
	w.git.commit("main", forge.Change{Parent: b, Files: map[string]string{"x": "y"}, Message: "instead"})
	w.untold(c)
	w.git.point("main", c) // taken back before anybody could tell
	fault.Remove()
	unknown.Remove()
	w.checkReaches(c, checkName("c"), "success", afterFault)

	file := strings.ReplaceAll(pipeline("d", "push"), "[main]", "[topic]")
	d := w.git.commit("topic", forge.Change{Files: map[string]string{".tekton/run.yaml": file}, Message: "d"})
	fault = w.git.inject(readDirectory, forge.Fault{Do: forge.ServerError502HTML()})
	w.deliver(w.git.pushed("refs/heads/topic"), http.StatusAccepted)
	w.hit(fault, 2)
	w.git.remove("topic")
	fault.Remove()
	w.checkReaches(d, checkName("d"), "success", afterFault)
	w.settled(afterFault)
	w.started("a", "b", "c", "d")
}

// B11: a force-push replaces A by B while one of A's two runs exists and the other waits to be created: the first goes
// on to its own end, the other is never created and its check is cancelled, "superseded by B"; B runs.
func TestB11SupersededWhileARunWaitsToBeCreated(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1, proxied: true}, isSupersededWhileARunWaits)
}

func isSupersededWhileARunWaits(t *testing.T, w *world) {
	base := w.git.commit("main", forge.Change{Files: map[string]string{"x": "base"}, Message: "base"})
	w.controller().Proxy.Add(cluster.Rule{
		Match: func(c cluster.Call) bool { return isCreate(c) && strings.HasPrefix(c.Name, "waits") },
		Do:    cluster.Fault(cluster.WebhookRefused()),
	})
	a, first := w.push(map[string]string{".tekton/a.yaml": pipeline("exists", "push", held), ".tekton/b.yaml": pipeline("waits", "push")})
	w.deliver(first, http.StatusAccepted)
	w.waits(a, "create/waits")
	w.checkReaches(a, checkName("waits"), "queued", soon)
	w.checkReaches(a, checkName("exists"), "in_progress", soon)

	b := w.git.commit("main", forge.Change{Parent: base, Files: map[string]string{".tekton/b.yaml": pipeline("b", "push")}, Message: "b"})
	w.deliver(w.again(), http.StatusAccepted)
	w.checkReaches(b, checkName("b"), "success", afterFault)
	check := w.checkReaches(a, checkName("waits"), "cancelled", afterFault)
	if !strings.Contains(check.Text, "superseded by "+b) {
		t.Errorf("the check does not say why: %s", check.Text)
	}
	if check, _ := w.current(a, checkName("exists")); check.Status != "in_progress" {
		t.Errorf("the check of the run that exists is %s/%s, want it in progress", check.Status, check.Conclusion)
	}
	event := w.recordOf(first)
	w.release(&v1alpha1.GitEvent{Status: v1alpha1.GitEventStatus{Runs: event.Status.Runs[:1]}})
	w.checkReaches(a, checkName("exists"), "success", afterFault)
	w.settled(afterFault)
	w.neverFailed(a)
	w.oneCheck(a, checkName("waits"))
	w.started("b", "exists")
	if runs, secrets := len(w.runs()), w.secrets(); secrets != runs {
		t.Errorf("%d secrets are left in the end, want those of %d runs", secrets, runs)
	}
}
