// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/report"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// S6: five Git servers of one tenant accept connections and never answer, and 80 events of the
// tenant wait. The tenant holds a quarter of the 64 workers; the other events wait in the fair
// queue. Pushes of another tenant run and are reported meanwhile.
func TestTenantWithHungHostsDelaysNoOtherTenant(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	const hosts, backlog, quarter, pushes = 5, 16, 16, 3
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	tenant := w.further("tenant")
	release := make(chan struct{})
	t.Cleanup(sync.OnceFunc(func() { close(release) }))
	for i := range hosts {
		hung := w.elsewhere(t, tenant, "lab-"+strconv.Itoa(i))
		hung.git.Inject(forge.Fault{Do: forge.Hold(release)})
		hung.pushMany(backlog, backlog)
	}
	w.eventually(soon, "the tenant's events wait in the fair queue, except those that hold a worker", func() error {
		if n := w.number(w.controller(), "plumbline_gitevent_turns_waiting{"); n < hosts*backlog-quarter {
			return fmt.Errorf("%d do", n)
		}
		return nil
	})
	for i := range pushes {
		sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("normal", "push"), "i": strconv.Itoa(i)})
		w.deliver(delivery, http.StatusAccepted)
		w.checkReaches(sha, checkName("normal"), "success", soon)
		w.settles(sha, soon)
	}
	if n := w.number(w.controller(), "plumbline_gitevent_turns_refused_total{", `share="namespace"`); n == 0 {
		t.Error("no metric says that the tenant's share of the workers is taken")
	}
}

// S7: an untrusted user pushes at once to the branches of 80 open pull requests. The permission is
// read a few times. A burst of pull requests shows at once that they wait for approval, and the
// others one after the other. A writer's push runs and is reported meanwhile.
func TestUntrustedPullRequestsAreReportedSlowly(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	const pulls = 80
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	w.git.commit("main", forge.Change{Files: map[string]string{".tekton/pr.yaml": pipeline("pr", "pull_request")}})
	w.git.fork("stranger")
	began := time.Now()
	var clients errgroup.Group
	clients.SetLimit(pulls / 4)
	for i := range pulls {
		branch := fmt.Sprintf("topic-%02d", i)
		w.forge.Commit("stranger/app", branch, forge.Change{Files: map[string]string{"i": branch}, Author: "stranger"})
		opened := w.opened(w.git.open("stranger", branch, "stranger"))
		clients.Go(func() error { return w.insist(opened, 0) })
	}
	w.must(clients.Wait())
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("normal", "push")})
	w.deliver(delivery, http.StatusAccepted)
	w.checkReaches(sha, checkName("normal"), "success", soon)
	w.eventually(afterFault, "more of them than a burst show it", func() error {
		if n := w.pendingReports(); n <= report.Burst {
			return fmt.Errorf("%d do", n)
		}
		return nil
	})
	w.eventually(workedOff, "every event is planned", func() error {
		for _, event := range w.events() {
			if event.Status.Plan == nil {
				return fmt.Errorf("%s is not", event.Name)
			}
		}
		return nil
	})
	if n, most := w.pendingReports(), report.Burst+1+int(time.Since(began)/report.Interval); n > most {
		t.Errorf("%d reports were written, want at most %d", n, most)
	}
	if n := w.count(askPermission); n > pulls/4 {
		t.Errorf("the permission of one account was read %d times", n)
	}
	if n := w.number(w.controller(), "plumbline_report_held_total"); n == 0 {
		t.Error("no metric says that reports are put off")
	}
}

// pendingReports counts the checks that say that a pull request waits for approval.
func (w *world) pendingReports() (n int) {
	for _, write := range w.git.log().writes {
		if write.Name == application && write.Status == "queued" {
			n++
		}
	}
	return n
}
