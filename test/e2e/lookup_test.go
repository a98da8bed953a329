// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// B14: a push whose commit may be in an open pull request waits as long as that cannot be told, whatever the answer is
// instead; the pull request's own event does not wait for it and runs the commit once. A push that turns out to be in
// none runs once then.
func TestB14PullLookupFails(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	w.push(map[string]string{".tekton/both.yaml": pipeline("both", "push, pull_request")})
	for name, do := range map[string]forge.Action{
		"502": forge.ServerError502HTML(), "dropped": forge.Drop(), "nothing": forge.Answer(http.StatusOK, nil, ""),
		"page": forge.Answer(http.StatusOK, http.Header{"Content-Type": {"text/html"}}, "<html>Log in</html>"),
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			branch := "topic-" + name
			file := strings.ReplaceAll(pipeline("both-"+name, "push, pull_request"), "[main]", "[main, "+branch+"]")
			sha := w.git.commit(branch, forge.Change{Files: map[string]string{".tekton/both.yaml": file}, Message: "code"})
			number := w.git.open("", branch, "octocat")
			fault := w.forge.Inject(forge.Fault{Route: forge.RouteCommitPulls, Do: do})
			push := w.git.pushed("refs/heads/" + branch)
			w.deliver(push, http.StatusAccepted)
			w.hit(fault, 4)
			w.openPush(push)
			w.untold(sha) // the pull request's event is not there yet: nothing runs

			w.deliver(w.opened(number), http.StatusAccepted)
			w.checkReaches(sha, checkName("both-"+name), "success", afterFault)
			w.openPush(push)
			fault.Remove()
			w.settled(afterFault)
			want := fmt.Sprintf("the commit is in open pull request #%d, whose own event runs it (skip-push-event-for-pr-commits)", number)
			if got := w.reasons(push)["both-"+name]; got != want {
				t.Errorf("the push: %q, want %q", got, want)
			}
			w.oneCheck(sha, checkName("both-"+name))
			w.neverFailed(sha)
			w.ranOnce("both-" + name)
		})
	}
	fault := w.forge.Inject(forge.Fault{Route: forge.RouteCommitPulls, Do: forge.ServerError502HTML()})
	sha, delivery := w.push(map[string]string{".tekton/both.yaml": pipeline("alone", "push, pull_request")})
	w.deliver(delivery, http.StatusAccepted)
	w.hit(fault, 4)
	w.openPush(delivery)
	w.untold(sha)
	fault.Remove()
	w.checkReaches(sha, checkName("alone"), "success", afterFault)
	w.settles(sha, afterFault)
	w.neverFailed(sha)
	w.ranOnce("alone")
	w.invariants()
}

// openPush requires that the event of a push waits for its plan and has started nothing.
func (w *world) openPush(d delivery) {
	w.t.Helper()
	w.eventually(soon, "the push waits for its plan", func() error {
		if event := w.recordOf(d); len(event.Status.Waits) == 0 || event.Status.Waits[0].Step != "plan" {
			return fmt.Errorf("it waits for %+v", event.Status.Waits)
		}
		return nil
	})
	if event := w.recordOf(d); event.Settled() || event.Status.Disposition == v1alpha1.DispositionIgnored || len(event.Status.Runs) != 0 {
		w.t.Errorf("the push is %s with %d runs, want it undecided", event.Status.Disposition, len(event.Status.Runs))
	}
}
