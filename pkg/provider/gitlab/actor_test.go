// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/delivery"
	"github.com/plumbline-ci/plumbline/test/forge"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// acting is a writer's merge request from a fork that others can push to, on a GitLab whose clock
// the test moves.
type acting struct {
	bench
	t   *testing.T
	now *atomic.Int64
	iid int64
}

func newActing(t *testing.T) acting {
	t.Helper()
	a := acting{t: t, now: &atomic.Int64{}}
	a.now.Store(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC).Unix())
	a.bench = newBench(t, forgelab.Options{Now: a.time})
	a.SetVisibility(testProject, forgelab.Public)
	a.CreateProject(testFork, forgelab.ProjectOptions{ForkOf: testProject, Visibility: forgelab.Public})
	a.push("writer")
	a.iid = a.OpenMergeRequest(forgelab.NewMergeRequest{
		Target: testProject, Source: testFork, SourceBranch: "topic", Author: "writer",
	})
	client, err := New(Options{Now: a.time}).Connect(t.Context(), a.URL(), a.event("open").Project,
		provider.Credentials{Token: a.token.Value, Reach: loopback()})
	if err != nil {
		t.Fatal(err)
	}
	a.client = client
	return a
}

// time advances by a second with each read.
func (a acting) time() time.Time { return time.Unix(a.now.Add(1), 0) }

func (a acting) push(by string) string {
	return a.GitLab.Commit(testFork, "topic",
		forgelab.Change{Author: by, Files: map[string]string{"x": time.Unix(a.now.Load(), 0).String()}})
}

// event is the event of an action on the merge request as it is, from a delivery that has just
// arrived.
func (a acting) event(action string) *v1alpha1.GitEventSpec {
	a.t.Helper()
	event := a.decode(a.MergeRequestDelivery(forgelab.MergeRequestEvent{Project: testProject, IID: a.iid, Action: "open"}))
	event.Action, event.PullRequest.Author, event.ReceivedAt = action, "writer", metav1.NewTime(a.time())
	if action == "label" {
		event.Action, event.EventType = "update", delivery.TypeLabels
	}
	return event
}

// is checks who acted according to GitLab, where the delivery names the writer: at once, and after
// the wait.
func (a acting) is(why, action, atOnce, inTheEnd string) {
	a.t.Helper()
	event := a.event(action)
	got, err := a.client.Actor(a.t.Context(), event, "writer")
	if atOnce == "waits" && !fault.Is(err, fault.Transient) || atOnce != "waits" && (err != nil || got != atOnce) {
		a.t.Errorf("%s: %q, %v, want %q", why, got, err, atOnce)
	}
	a.now.Add(int64(confirmWithin / time.Second))
	if got, err := a.client.Actor(a.t.Context(), event, "writer"); err != nil || got != inTheEnd {
		a.t.Errorf("%s: %q, %v in the end, want %q", why, got, err, inTheEnd)
	}
}

// S11: GitLab itself says who acted on a merge request from a fork.
func TestActor(t *testing.T) {
	t.Parallel()
	a := newActing(t)
	a.is("as it was opened", "open", "writer", "writer")
	a.is("what the author pushed before", "update", "writer", "writer")
	a.is("a label that nobody set", "label", "waits", "")
	a.is("opened again, which nobody did", "reopen", "writer", "writer") // by who pushed
	a.SetLabels(testProject, a.iid, "writer", "one")
	a.is("a label", "label", "writer", "writer")
	a.push("stranger")
	for _, action := range []string{"update", "open", "reopen"} {
		a.is("an untrusted user's push as "+action, action,
			map[bool]string{true: "stranger", false: "waits"}[action == "update"], "stranger")
	}
	a.is("a label of before the untrusted user's push", "label", "waits", "")
	a.SetLabels(testProject, a.iid, "writer", "one", "two")
	a.is("a label after it", "label", "writer", "writer")
	a.SetLabels(testProject, a.iid, "stranger", "one", "two", "three")
	a.SetLabels(testProject, a.iid, "writer", "one", "three")
	a.is("an untrusted user's label", "label", "waits", "stranger")
	a.CloseMergeRequest(testProject, a.iid, "writer")
	a.ReopenMergeRequest(testProject, a.iid, "writer")
	a.is("the writer opens it again with the untrusted user's commit", "reopen", "writer", "writer")
	a.is("but has not pushed that", "update", "stranger", "stranger")
	a.CloseMergeRequest(testProject, a.iid, "writer")
	a.ReopenMergeRequest(testProject, a.iid, "stranger")
	a.is("the stranger opens it again", "reopen", "waits", "stranger")
	a.CloseMergeRequest(testProject, a.iid, "writer")
	a.push("stranger")
	a.ReopenMergeRequest(testProject, a.iid, "writer")
	a.push("writer")
	a.is("the writer pushes", "update", "writer", "writer")
}

// A label in the project itself needs no versions: users who push there have write access.
func TestActorOfLabelInProject(t *testing.T) {
	t.Parallel()
	a := newActing(t)
	a.Commit("own", map[string]string{"x": "z"})
	a.iid = a.OpenMergeRequest(forgelab.NewMergeRequest{Target: testProject, SourceBranch: "own", Author: "writer"})
	a.is("nobody set one", "label", "waits", "")
	a.SetLabels(testProject, a.iid, "writer", "one")
	a.Commit("own", map[string]string{"x": "newer"})
	a.is("a label", "label", "writer", "writer")
	if n := a.Count(forgelab.RouteMRVersions); n != 0 {
		t.Errorf("%d looks at the heads", n)
	}
}

// GitLab lists the events of a merge request in no particular order, and changes rows.
func TestActorIsNewestInAnyOrder(t *testing.T) {
	t.Parallel()
	a := newActing(t)
	row := func(id int, by, what string) string {
		return fmt.Sprintf(`{"id":%d,"action":%q,"state":%q,"created_at":"2027-01-01T00:00:00Z","user":{"username":%q}}`, id,
			what, what, by)
	}
	for action, route := range map[string]string{"label": forgelab.RouteMRLabels, "reopen": forgelab.RouteMRStates} {
		what := map[string]string{"label": "add", "reopen": "reopened"}[action]
		rows := "[" + row(7, "stranger", what) + "," + row(3, "writer", what) + "]"
		a.Inject(forgelab.Fault{Route: route, Count: 2, Do: forge.Answer(200, nil, rows)})
		a.is("the older one is listed last", action, "waits", "stranger")
	}
}

// A read that the token does not permit confirms nothing, at once. A failed read is retried.
func TestActorIsUnknownIfHidden(t *testing.T) {
	t.Parallel()
	a := newActing(t)
	for route, action := range map[string]string{forgelab.RouteMRVersions: "open", forgelab.RouteMRStates: "reopen",
		forgelab.RouteMRLabels: "label", forgelab.RouteEvents: "update"} {
		for _, do := range []forgelab.Action{forge.ServerError502HTML(), forge.Answer(200, nil, "null")} {
			a.Inject(forgelab.Fault{Route: route, Count: 1, Do: do})
			if got, err := a.client.Actor(t.Context(), a.event(action), "writer"); got != "" || !fault.Is(err, fault.Transient) {
				t.Errorf("%s: %q, %v, want a wait", route, got, err)
			}
		}
	}
	a.Inject(forgelab.Fault{Route: forgelab.RouteEvents, Count: 2, Do: forgelab.Forbidden403()})
	a.is("403", "update", "", "")
	a.SetVisibility(testFork, forgelab.Private)
	a.is("a private fork", "update", "", "")
	event := a.event("update")
	event.PullRequest.HeadProjectID = 0
	if got, err := a.client.Actor(t.Context(), event, "writer"); got != "" || err != nil {
		t.Errorf("a fork that was deleted: %q, %v", got, err)
	}
}
