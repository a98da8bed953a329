// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	pending "github.com/plumbline-ci/plumbline/pkg/strangers"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// S6: five Git hosts of one tenant accept connections and never answer, and 60 of its events wait. What another tenant pushes
// meanwhile is run and reported as ever.
func TestS6ATenantsHungHostsDelayNoOtherTenant(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	const hosts, backlog, pushes = 5, 12, 3
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	tenant := shared.cluster.Namespace(t, "tenant")
	release := make(chan struct{})
	t.Cleanup(sync.OnceFunc(func() { close(release) }))
	for i := range hosts {
		hung := w.elsewhere(t, tenant, "lab-"+strconv.Itoa(i))
		hung.git.Inject(forge.Fault{Do: forge.Hold(release)})
		hung.pushMany(backlog, backlog)
	}
	w.eventually(soon, "the tenant has all workers that it may have", func() error {
		if w.number(w.controller(), "plumbline_gitevent_turns_refused_total", `share="namespace"`) == 0 {
			return fmt.Errorf("no event of it was told to wait")
		}
		return nil
	})
	for i := range pushes {
		sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("normal", "push"), "i": strconv.Itoa(i)})
		w.deliver(delivery, http.StatusAccepted)
		w.checkReaches(sha, checkName("normal"), "success", normalTime)
	}
	if n := w.openEvents(); n > pushes {
		t.Errorf("%d events of the other tenant are open", n)
	}
}

// elsewhere is the same installation as it serves a repository of another namespace on a GitLab of its own.
func (w *world) elsewhere(t *testing.T, namespace, name string) *world {
	t.Helper()
	g := &onGitLab{GitLab: gitlab.New(gitlab.Options{}), forks: map[string]gitlab.Project{}, heads: map[int64]string{}}
	w.must(g.begin())
	t.Cleanup(func() { _ = g.Close() })
	other := *w
	other.git, other.ci = g, namespace
	other.createRepository(namespace, name)
	other.claimed()
	return &other
}

// S7: a stranger pushes at once to the branches of 80 open pull requests. Who may write is asked a few times, few of the pull
// requests show at once that they wait for approval, the others little by little, and what somebody else pushes is run and
// reported as ever.
func TestS7ManyPullRequestsOfAForkDelayNothing(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	const pulls = 80
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	w.git.commit("main", forge.Change{Files: map[string]string{".tekton/pr.yaml": pipeline("pr", "pull_request")}})
	w.git.fork("stranger")
	var deliveries []delivery
	for i := range pulls {
		branch := fmt.Sprintf("topic-%02d", i)
		w.forge.Commit("stranger/app", branch, forge.Change{Files: map[string]string{"i": branch}, Author: "stranger"})
		deliveries = append(deliveries, w.opened(w.git.open("stranger", branch, "stranger")))
	}
	began := time.Now()
	for chunk := range slices.Chunk(deliveries, pulls/4) {
		for _, d := range chunk {
			w.deliver(d, http.StatusAccepted)
		}
	}
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("normal", "push")})
	w.deliver(delivery, http.StatusAccepted)
	w.checkReaches(sha, checkName("normal"), "success", normalTime)
	w.eventually(soon, "little by little more of them show it", func() error {
		if n := len(w.pendings()); n <= pending.Burst {
			return fmt.Errorf("%d show it", n)
		}
		return nil
	})
	most := pending.Burst + 1 + int(time.Since(began)/pending.Apart)
	if n := len(w.pendings()); n > most {
		t.Errorf("%d reports were written within %v, want at most %d", n, time.Since(began), most)
	}
	if n := w.count(askPermission); n > pulls/4 {
		t.Errorf("who may write was asked %d times because of one account", n)
	}
	w.eventually(soon, "every event is planned", func() error {
		for _, event := range w.events() {
			if event.Status.Plan == nil {
				return fmt.Errorf("%s is not", event.Name)
			}
		}
		return nil
	})
	if held := w.number(w.controller(), "plumbline_report_held_total"); held == 0 {
		t.Error("no metric tells that reports are held")
	}
}

// pendings are the commits for which a check that waits for approval was written.
func (w *world) pendings() []string {
	var shas []string
	for _, write := range w.git.log().writes {
		if write.Name == application && write.Status == "queued" {
			shas = append(shas, write.SHA)
		}
	}
	return shas
}

// S9: somebody who may write PipelineRuns labels them with whatever there is: they wake no event and start no sweep. A run of
// the installation is heard of all the same.
func TestS9LabelledForeignRunsWakeNothing(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	const foreign = 40
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("own", "push", held)})
	w.deliver(delivery, http.StatusAccepted)
	event := w.created(sha)
	w.checkReaches(sha, checkName("own"), "in_progress", soon)
	w.settledDown()
	before := w.wakeups()
	runs := w.Tekton.TektonV1().PipelineRuns(w.ci)
	for i := range foreign {
		_, err := runs.Create(w.ctx, labelled(fmt.Sprint("foreign-", i), w.Namespace, []string{"sweep", event.Name, "no-event"}[i%3]), metav1.CreateOptions{})
		w.must(err)
	}
	for i := range foreign {
		w.must(runs.Delete(w.ctx, fmt.Sprint("foreign-", i), metav1.DeleteOptions{}))
	}
	w.release(event)
	w.checkReaches(sha, checkName("own"), "success", soon) // and with it everything before it has passed the watch
	w.settles(sha, soon)
	if woken := w.wakeups() - before; before == 0 || woken >= foreign/2 {
		t.Errorf("%v wake-ups while one run ended and %d foreign ones came and went", woken, foreign)
	}
}

// wakeups is how many events were enqueued.
func (w *world) wakeups() int {
	return w.number(w.controller(), "kn_workqueue_adds_total{", `name="gitevents"`)
}

// settledDown waits until no event is enqueued for a second.
func (w *world) settledDown() {
	last, since := w.wakeups(), time.Now()
	w.eventually(soon, "no event is enqueued", func() error {
		if now := w.wakeups(); now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < time.Second {
			return fmt.Errorf("%v were", last)
		}
		return nil
	})
}

// labelled is a PipelineRun that never begins, with the labels of an installation and an event.
func labelled(name, installation, event string) *pipelinev1.PipelineRun {
	run := sample(name)
	run.Labels = map[string]string{plumbline.InstallationLabel: installation, plumbline.EventLabel: event}
	return run
}
