// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// openForkPull opens a pull request of a user from the user's own fork. The fork and the base both
// have a pipeline "pr" for pull requests.
func (env *environment) openForkPull(user string) (number int, sha string) {
	env.t.Helper()
	files := map[string]string{".tekton/pr.yaml": pipeline("pr", "pull_request")}
	if env.git.tip("main") == "" {
		env.git.commit("main", forge.Change{Files: files})
	}
	sha = env.git.fork(user)
	return env.git.open(user, "feature", user), sha
}

// opened returns the delivery of a pull request that was just opened.
func (env *environment) opened(number int) delivery {
	return env.git.pulled(number, "opened")
}

// about matches the calls about a user.
func about(user string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return strings.Contains(r.URL.Path+"/", "/"+user+"/") || r.URL.Query().Get("query") == user
	}
}

// recordOf returns the GitEvent of a delivery, or the zero value when there is none.
func (env *environment) recordOf(d delivery) v1alpha1.GitEvent {
	env.t.Helper()
	for _, event := range env.events() {
		if event.Spec.DeliveryKey == d.ID() {
			return event
		}
	}
	return v1alpha1.GitEvent{}
}

// An untrusted user's pull request from a fork creates no PipelineRun and no secret while the
// service limits the whole installation, which stops every call for minutes. The event waits, and
// nothing is reported to the commit.
func TestUntrustedUserNeverRunsWhileRateLimited(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1, proxied: true})
	number, sha := env.openForkPull("stranger")
	limited := env.git.inject(askPermission, forge.Fault{Match: about("stranger"), Do: forge.SecondaryRateLimit(0)})
	opened := env.opened(number)
	env.deliver(opened, 202)
	env.awaitHits(limited, 1)
	env.requireAccessWait("stranger", sha, opened)
	env.requireNothingStarted()
}

// requireAccessWait requires that the event is recorded, waits without a decision, and has
// reported nothing.
func (env *environment) requireAccessWait(user, sha string, d delivery) {
	env.t.Helper()
	env.eventually(soon, user+": the event waits", func() error {
		if event := env.recordOf(d); len(event.Status.Waits) == 0 && event.Status.Disposition == "" {
			return errMissing
		}
		return nil
	})
	event := env.recordOf(d)
	if event.Status.Disposition != "" || len(event.Status.Waits) == 0 || event.Status.Waits[0].Step != "plan" {
		env.t.Errorf("%s: the event is %q and waits for %v, want no disposition and a wait of plan", user,
			event.Status.Disposition, event.Status.Waits)
	}
	if writes := env.checkWrites(sha, ""); len(writes) != 0 {
		env.t.Errorf("%s: the commit got %q %q, want nothing before the look-up works", user, writes[0].Name, writes[0].Title)
	}
}

// requireNothingStarted requires that no PipelineRun and no secret was created, nor a creation
// attempted.
func (env *environment) requireNothingStarted() {
	env.t.Helper()
	if runs, secrets := env.runs(), env.countSecrets(); len(runs) != 0 || secrets != 0 {
		env.t.Errorf("%d PipelineRuns and %d secrets, want none", len(runs), secrets)
	}
	for _, controller := range env.controllers {
		for _, call := range controller.Proxy.Calls() {
			if call.Verb == "create" && (call.Resource == "pipelineruns" || call.Resource == "secrets") {
				env.t.Errorf("the controller asked for %s %s/%s", call.Resource, call.Namespace, call.Name)
			}
		}
	}
	for _, write := range env.git.log().writes {
		if write.Conclusion != "" || !strings.Contains(write.Title, "Pending approval") {
			env.t.Errorf("the forge got %s/%s %q, want only Pending approval", write.Status, write.Conclusion, write.Title)
		}
	}
}

// B6: while the access look-up fails, the event waits: no run, no "Pending approval", no failure.
// Once it works, a writer's pull request runs and an untrusted user's waits for approval.
func TestFailedAccessLookupWaits(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1, proxied: true}, accessLookupWaits)
}

func accessLookupWaits(t *testing.T, env *environment) {
	env.git.grant("writer", "write")
	shas, deliveries := map[string]string{}, map[string]delivery{}
	faults := map[string]*forge.FaultHandle{}
	for _, user := range []string{"writer", "stranger"} {
		number, sha := env.openForkPull(user)
		faults[user] = env.git.inject(askPermission, forge.Fault{Match: about(user), Do: forge.ServerError502HTML()})
		shas[user], deliveries[user] = sha, env.opened(number)
		env.deliver(deliveries[user], 202)
	}
	for user, fault := range faults {
		env.awaitHits(fault, 6) // the workqueue retries with a backoff
		env.requireAccessWait(user, shas[user], deliveries[user])
	}
	env.requireNothingStarted()
	for _, fault := range faults {
		fault.Remove()
	}
	env.awaitCheck(shas["writer"], checkName("pr"), "success", afterFault)
	check := env.awaitCheck(shas["stranger"], application, "queued", afterFault)
	if !strings.Contains(check.Title, "Pending approval") {
		t.Errorf("the untrusted user's check says %q, want Pending approval", check.Title)
	}
	env.awaitAllSettled(afterFault)
	env.requireRunCount(1)
	for _, sha := range shas {
		env.requireNoFailure(sha)
	}
}
