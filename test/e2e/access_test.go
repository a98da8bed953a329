// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// forkPull opens a pull request of a user from a fork of the user's own. The fork and the base both
// have a pipeline "pr" for pull requests.
func (w *world) forkPull(user string) (number int, sha string) {
	w.t.Helper()
	files := map[string]string{".tekton/pr.yaml": pipeline("pr", "pull_request")}
	if w.git.tip("main") == "" {
		w.git.commit("main", forge.Change{Files: files})
	}
	sha = w.git.fork(user)
	return w.git.open(user, "feature", user), sha
}

// opened is the delivery of a pull request that was just opened.
func (w *world) opened(number int) delivery {
	return w.git.pulled(number, "opened")
}

// about matches the calls about a user.
func about(user string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return strings.Contains(r.URL.Path+"/", "/"+user+"/") || r.URL.Query().Get("query") == user
	}
}

// recordOf is the record of a delivery; the zero value when there is none.
func (w *world) recordOf(d delivery) v1alpha1.GitEvent {
	w.t.Helper()
	for _, event := range w.events() {
		if event.Spec.DeliveryKey == d.ID() {
			return event
		}
	}
	return v1alpha1.GitEvent{}
}

// A fork's pull request by a stranger creates no PipelineRun and no secret while the service limits
// the whole installation, which stops every call for minutes: the event waits and the commit hears
// nothing.
func TestStrangerNeverRunsWhileLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1, proxied: true})
	w.claimed()
	number, sha := w.forkPull("stranger")
	limited := w.git.inject(askPermission, forge.Fault{Match: about("stranger"), Do: forge.SecondaryRateLimit(0)})
	opened := w.opened(number)
	w.deliver(opened, 202)
	w.hit(limited, 1)
	w.waitsForAccess("stranger", sha, opened)
	w.nothingRan()
}

// waitsForAccess requires an event that is recorded, has decided nothing and tells nothing.
func (w *world) waitsForAccess(user, sha string, d delivery) {
	w.t.Helper()
	w.eventually(soon, user+": the event waits", func() error {
		if event := w.recordOf(d); len(event.Status.Waits) == 0 && event.Status.Disposition == "" {
			return errMissing
		}
		return nil
	})
	event := w.recordOf(d)
	if event.Status.Disposition != "" || len(event.Status.Waits) == 0 || event.Status.Waits[0].Step != "plan" {
		w.t.Errorf("%s: the event is %q and waits for %v, want no disposition and a wait of plan", user, event.Status.Disposition, event.Status.Waits)
	}
	if writes := w.writes(sha, ""); len(writes) != 0 {
		w.t.Errorf("%s: the commit was told %q %q, want nothing while it is not known", user, writes[0].Name, writes[0].Title)
	}
}

// nothingRan requires that no PipelineRun and no secret was ever made, nor asked for.
func (w *world) nothingRan() {
	w.t.Helper()
	if runs, secrets := w.runs(), w.secrets(); len(runs) != 0 || secrets != 0 {
		w.t.Errorf("%d PipelineRuns and %d secrets, want none", len(runs), secrets)
	}
	for _, controller := range w.controllers {
		for _, call := range controller.Proxy.Calls() {
			if call.Verb == "create" && (call.Resource == "pipelineruns" || call.Resource == "secrets") {
				w.t.Errorf("the controller asked for %s %s/%s", call.Resource, call.Namespace, call.Name)
			}
		}
	}
	for _, write := range w.git.log().writes {
		if write.Conclusion != "" || !strings.Contains(write.Title, "Pending approval") {
			w.t.Errorf("the forge was told %s/%s %q, want nothing but Pending approval", write.Status, write.Conclusion, write.Title)
		}
	}
}

// B6: while the access look-up fails, nothing is decided: no run, no "Pending approval", no
// failure. When it works again a writer's pull request runs and a stranger's waits for approval.
func TestB6AccessLookupFails(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1, proxied: true}, waitsToKnowWhoMay)
}

func waitsToKnowWhoMay(t *testing.T, w *world) {
	w.git.grant("writer", "write")
	shas, deliveries := map[string]string{}, map[string]delivery{}
	faults := map[string]*forge.FaultHandle{}
	for _, user := range []string{"writer", "stranger"} {
		number, sha := w.forkPull(user)
		faults[user] = w.git.inject(askPermission, forge.Fault{Match: about(user), Do: forge.ServerError502HTML()})
		shas[user], deliveries[user] = sha, w.opened(number)
		w.deliver(deliveries[user], 202)
	}
	for user, fault := range faults {
		w.hit(fault, 6) // retried by the workqueue's backoff
		w.waitsForAccess(user, shas[user], deliveries[user])
	}
	w.nothingRan()
	for _, fault := range faults {
		fault.Remove()
	}
	w.checkReaches(shas["writer"], checkName("pr"), "success", afterFault)
	check := w.checkReaches(shas["stranger"], application, "queued", afterFault)
	if !strings.Contains(check.Title, "Pending approval") {
		t.Errorf("the stranger's check says %q, want Pending approval", check.Title)
	}
	w.settled(afterFault)
	if runs := w.runs(); len(runs) != 1 {
		t.Errorf("%d PipelineRuns, want the writer's", len(runs))
	}
	for _, sha := range shas {
		w.neverFailed(sha)
	}
}
