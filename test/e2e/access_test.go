// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// forkPull opens a pull request of a user from a fork of the user's own. The fork and the base both have a pipeline
// "pr" for pull requests.
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

// accessRoutes are the routes that tell who may do what.
func accessRoutes() []string {
	return []string{forge.RoutePermission, forge.RouteCollaborator, forge.RouteMember, forge.RoutePublicMember, forge.RouteMembers}
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

// stranger is one way the access routes may answer about somebody without write access.
type stranger struct {
	user string
	do   forge.Action // nil: the forge's own answer
	// waits: the answer is none, so the event waits. Otherwise it is a no, and one queued check says so.
	waits bool
}

func strangers() []stranger {
	json := func(code int, body string) forge.Action {
		return forge.Answer(code, http.Header{"Content-Type": {"application/json"}}, body)
	}
	return []stranger{
		{"honest-200", nil, false},
		{"none-200", json(200, `{"permission":"none"}`), false},
		{"triage-200", json(200, `{"permission":"read","role_name":"triage"}`), false},
		{"empty-200", json(200, `{}`), true},
		{"nonsense-200", json(200, `{"permission":"owner"}`), true},
		{"page-200", forge.Answer(200, http.Header{"Content-Type": {"text/html"}}, "<html>write</html>"), true},
		{"member-204", json(204, ""), true},
		{"forbidden-403", forge.Forbidden403(), true},
		{"unknown-404", forge.NotFound404(), false},
		{"broken-500", json(500, `{"message":"Server Error"}`), true},
		{"unicorn-502", forge.ServerError502HTML(), true},
		{"dropped", forge.Drop(), true},
		{"silent", forge.Hang(nil), true},
	}
}

// A fork's pull request by a stranger never creates a PipelineRun or a secret, whatever the access routes answer: with
// an answer that is a no there is one queued check "Pending approval", with anything else the event waits and the commit
// hears nothing.
func TestStrangerNeverRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1, proxied: true})
	w.claimed()
	w.neverRun(strangers()...)
	w.hiddenRepository()
	w.nothingRan()
}

// The same while the service limits the whole installation, which stops every call for minutes.
func TestStrangerNeverRunsWhileLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1, proxied: true})
	w.claimed()
	w.neverRun(stranger{"secondary-403", forge.SecondaryRateLimit(0), true})
	w.nothingRan()
}

// neverRun delivers a pull request of each stranger and requires what the table says of its commit.
func (w *world) neverRun(cases ...stranger) {
	w.t.Helper()
	faults := make([]*forge.FaultHandle, len(cases))
	deliveries := make([]delivery, len(cases))
	shas := make([]string, len(cases))
	for i, c := range cases {
		var number int
		number, shas[i] = w.forkPull(c.user)
		for _, route := range accessRoutes() {
			if c.do == nil {
				continue
			}
			if handle := w.forge.Inject(forge.Fault{Route: route, Match: about(c.user), Do: c.do}); route == forge.RoutePermission {
				faults[i] = handle
			}
		}
		deliveries[i] = w.opened(number)
		w.deliver(deliveries[i], 202)
	}
	for i, c := range cases {
		if faults[i] != nil {
			w.met(c.user, faults[i])
		}
		if c.waits {
			w.waitsForAccess(c.user, shas[i], deliveries[i])
			continue
		}
		check := w.checkReaches(shas[i], application, "queued", soon)
		if all := w.git.checks(shas[i]); len(all) != 1 || !strings.Contains(check.Title, "Pending approval") {
			w.t.Errorf("%s: the commit has the checks %+v, want one that says Pending approval", c.user, all)
		}
	}
}

// met waits until the access look-up of a user met its fault.
func (w *world) met(user string, fault *forge.FaultHandle) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, soon)
	defer cancel()
	if err := fault.Wait(ctx, 1); err != nil {
		w.t.Fatalf("%s: nobody asked for the access: %v", user, err)
	}
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

// hiddenRepository is the 404 of a repository that the App cannot see any more: it says nothing about the user.
func (w *world) hiddenRepository() {
	w.t.Helper()
	const user = "hidden-404"
	number, sha := w.forkPull(user)
	hidden := w.git.inject(readRepository, forge.Fault{Do: forge.NotFound404()})
	asked := w.git.inject(askPermission, forge.Fault{Match: about(user), Do: forge.NotFound404()})
	delivery := w.opened(number)
	w.deliver(delivery, 202)
	w.met(user, asked)
	w.met(user, hidden)
	w.waitsForAccess(user, sha, delivery)
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

// B6: while the access look-up fails, nothing is decided: no run, no "Pending approval", no failure. When it works again
// a writer's pull request runs and a stranger's waits for approval.
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
		ctx, cancel := context.WithTimeout(w.ctx, soon)
		defer cancel()
		w.must(fault.Wait(ctx, 6)) // retried by the workqueue's backoff
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
