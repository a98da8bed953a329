// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// testComplete: what a signature vouches for is taken as it is, without a call; what only a token
// does is asked for.
func testComplete(t *testing.T, w World) {
	sha := w.Service.Commit("main", map[string]string{"x": "y"})
	w.Service.Commit("topic", map[string]string{"x": "z"})
	if w.Mints && w.SignsBody {
		w.Service.Fail(MintToken, Unavailable, 0) // no call can be made
	}
	client := connect(t, w)
	push := &v1alpha1.GitEventSpec{
		Trigger: v1alpha1.TriggerPush, SHA: sha, BaseRef: "refs/heads/main", HeadRef: "refs/heads/main",
		HeadURL: w.Project.URL, Project: w.Project,
	}
	for _, event := range []*v1alpha1.GitEventSpec{w.Service.PullRequest("topic", "dev"), push} {
		want := event.DeepCopy()
		got, err := client.Complete(t.Context(), event)
		if err != nil {
			t.Fatalf("%s: %v", event.Trigger, err)
		}
		if d := cmp.Diff(want, event); d != "" {
			t.Errorf("%s: the event itself was changed: %s", event.Trigger, d)
		}
		if !w.SignsBody { // the service describes the commit, now or when it is asked for the head
			want.Commit, got.Commit = nil, nil
			want.Project.OwnerID = owned(t, got)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s, want it as it is", event.Trigger, d)
		}
	}
}

// owned requires that a service vouches for the account that an event's project belongs to, and
// returns its id.
func owned(t *testing.T, event *v1alpha1.GitEventSpec) int64 {
	t.Helper()
	if event.Project.OwnerID <= 0 {
		t.Error("the service does not say whose the project is")
	}
	return event.Project.OwnerID
}

// testForged: of a service that signs nothing whoever knows the token says what they like. None of
// it is believed, and what may still become true is waited for.
func testForged(t *testing.T, open func(*testing.T) World) {
	if open(t).SignsBody {
		t.Skip("this service signs its deliveries: nobody can forge a body")
	}
	pushed := func(w World, ref, sha string) *v1alpha1.GitEventSpec {
		return &v1alpha1.GitEventSpec{Trigger: v1alpha1.TriggerPush, SHA: sha, BaseRef: ref, HeadRef: ref, Project: w.Project}
	}
	const branch, wait, ignored = "feature/a", fault.ReasonNotConfirmed, "ignored"
	pull := func(w World) *v1alpha1.GitEventSpec {
		w.Service.Commit(branch, map[string]string{"x": "a"})
		return w.Service.PullRequest(branch, "dev")
	}
	for name, c := range map[string]struct {
		event func(w World) *v1alpha1.GitEventSpec
		want  string // the wait, ignored, or nothing: it is confirmed
	}{
		"a push to where the branch is": {func(w World) *v1alpha1.GitEventSpec {
			return pushed(w, "refs/heads/"+branch, w.Service.Commit(branch, map[string]string{"x": "a"}))
		}, ""},
		"a push that others came after": {func(w World) *v1alpha1.GitEventSpec {
			sha := w.Service.Commit(branch, map[string]string{"x": "a"})
			w.Service.Commit(branch, map[string]string{"x": "b"})
			return pushed(w, "refs/heads/"+branch, sha)
		}, ""},
		"a push that a forced push replaced": {func(w World) *v1alpha1.GitEventSpec {
			base := w.Service.Commit(branch, map[string]string{"x": "base"})
			sha := w.Service.Commit(branch, map[string]string{"x": "a"})
			w.Service.ForcePush(branch, base, nil)
			return pushed(w, "refs/heads/"+branch, sha)
		}, ""},
		"a push to a branch of a commit of another": {func(w World) *v1alpha1.GitEventSpec {
			w.Service.Commit("main", map[string]string{"x": "base"})
			return pushed(w, "refs/heads/main", w.Service.Commit(branch, map[string]string{"x": "a"}))
		}, wait},
		"a push to a branch that never was": {func(w World) *v1alpha1.GitEventSpec {
			return pushed(w, "refs/heads/never", w.Service.Commit(branch, map[string]string{"x": "a"}))
		}, wait},
		"a tag that never was": {func(w World) *v1alpha1.GitEventSpec {
			return pushed(w, "refs/tags/v1", w.Service.Commit(branch, map[string]string{"x": "a"}))
		}, wait},
		"an older head of a pull request": {func(w World) *v1alpha1.GitEventSpec {
			event := pull(w)
			w.Service.Commit(branch, map[string]string{"x": "b"})
			return event
		}, ""},
		"a head that the pull request never had": {func(w World) *v1alpha1.GitEventSpec {
			event := pull(w)
			event.SHA = w.Service.Commit("another", map[string]string{"x": "b"})
			return event
		}, wait},
		"a pull request that never was": {func(w World) *v1alpha1.GitEventSpec {
			event := pull(w)
			event.PullRequest.Number += 1000
			return event
		}, wait},
		"another author": {func(w World) *v1alpha1.GitEventSpec {
			event := pull(w)
			event.PullRequest.Author, event.PullRequest.AuthorID = "admin", event.PullRequest.AuthorID+1000
			return event
		}, ignored},
		"another head repository": {func(w World) *v1alpha1.GitEventSpec {
			event := pull(w)
			event.PullRequest.HeadProjectID += 1000
			return event
		}, ignored},
		"a pull request that was closed since": {func(w World) *v1alpha1.GitEventSpec {
			event := pull(w)
			w.Service.Withdraw(event)
			return event
		}, ignored},
		"a comment that never was": {func(w World) *v1alpha1.GitEventSpec {
			event := w.Service.Comment(pull(w), "ada", "/deploy")
			event.Comment.ID += 1000
			return event
		}, wait},
		"a comment of somebody else": {func(w World) *v1alpha1.GitEventSpec {
			event := w.Service.Comment(pull(w), "ada", "/deploy")
			event.Sender = "admin"
			return event
		}, ignored},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			got, err := connect(t, w).Complete(t.Context(), c.event(w))
			said := ""
			switch f := fault.Of(err); {
			case fault.Is(err, fault.Ignored):
				said = ignored
			case f != nil:
				said = f.Reason
			}
			if said != c.want || (got == nil) == (c.want == "") || c.want == wait && !fault.Is(err, fault.Transient) {
				t.Errorf("%+v, %v, want %q", got, err, c.want)
			}
		})
	}
}
