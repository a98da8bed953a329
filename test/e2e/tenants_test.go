// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
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
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1})
	tenant := env.addNamespace("tenant")
	release := make(chan struct{})
	t.Cleanup(sync.OnceFunc(func() { close(release) }))
	for i := range hosts {
		hung := env.onOtherGitLab(t, tenant, "lab-"+strconv.Itoa(i))
		hung.git.Inject(forge.Fault{Do: forge.Hold(release)})
		hung.pushMany(backlog, backlog)
	}
	env.eventually(soon, "the tenant's events wait in the fair queue, except those that hold a worker", func() error {
		if n := env.metric(env.controller(), "plumbline_gitevent_turns_waiting{"); n < hosts*backlog-quarter {
			return fmt.Errorf("%d do", n)
		}
		return nil
	})
	for i := range pushes {
		sha := env.pushAccepted(map[string]string{".tekton/push.yaml": pipeline("normal", "push"), "i": strconv.Itoa(i)})
		env.awaitCheck(sha, checkName("normal"), "success", soon)
		env.awaitSettled(sha, soon)
	}
	if n := env.metric(env.controller(), "plumbline_gitevent_turns_refused_total{", `share="namespace"`); n == 0 {
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
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1})
	env.git.commit("main", forge.Change{Files: map[string]string{".tekton/pr.yaml": pipeline("pr", "pull_request")}})
	env.git.fork("stranger")
	began := time.Now()
	var clients errgroup.Group
	clients.SetLimit(pulls / 4)
	for i := range pulls {
		branch := fmt.Sprintf("topic-%02d", i)
		env.forge.Commit("stranger/app", branch, forge.Change{Files: map[string]string{"i": branch}, Author: "stranger"})
		opened := env.opened(env.git.open("stranger", branch, "stranger"))
		clients.Go(func() error { return env.deliverUntilAcknowledged(opened, 0) })
	}
	env.must(clients.Wait())
	sha := env.pushAccepted(map[string]string{".tekton/push.yaml": pipeline("normal", "push")})
	env.awaitCheck(sha, checkName("normal"), "success", soon)
	env.eventually(afterFault, "more of them than a burst show it", func() error {
		if n := env.countPendingReports(); n <= report.Burst {
			return fmt.Errorf("%d do", n)
		}
		return nil
	})
	env.eventually(workedOff, "every event is planned", func() error {
		for _, event := range env.events() {
			if event.Status.Plan == nil {
				return fmt.Errorf("%s is not", event.Name)
			}
		}
		return nil
	})
	if n, most := env.countPendingReports(), report.Burst+1+int(time.Since(began)/report.Interval); n > most {
		t.Errorf("%d reports were written, want at most %d", n, most)
	}
	if n := env.countOperations(askPermission); n > pulls/4 {
		t.Errorf("the permission of one account was read %d times", n)
	}
	if n := env.metric(env.controller(), "plumbline_report_held_total"); n == 0 {
		t.Error("no metric says that reports are put off")
	}
}

// countPendingReports counts the checks that say that a pull request waits for approval.
func (env *environment) countPendingReports() (n int) {
	for _, write := range env.git.log().writes {
		if write.Name == application && write.Status == "queued" {
			n++
		}
	}
	return n
}
