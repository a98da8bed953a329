// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// testComplete: an event of a signed delivery is returned unchanged, without a call. Without a
// signature it is read from the service.
func testComplete(t *testing.T, w Env) {
	sha := w.Service.Commit("main", map[string]string{"x": "y"})
	w.Service.Commit("topic", map[string]string{"x": "z"})
	if w.Mints && w.SignsBody {
		w.Service.Fail(MintToken, Unavailable, 0) // no call can succeed
	}
	client := connect(t, w)
	push := pushed(w, "refs/heads/main", sha)
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

// owned requires that the service confirms the owner of an event's project, and returns the owner's
// id.
func owned(t *testing.T, event *v1alpha1.GitEventSpec) int64 {
	t.Helper()
	if event.Project.OwnerID <= 0 {
		t.Error("the service does not say whose the project is")
	}
	return event.Project.OwnerID
}

// claim is an event that a delivery claims, and what Complete makes of it.
type claim struct {
	event func(w Env) *v1alpha1.GitEventSpec
	// want is a reason to wait, ignored, or empty if the service confirms the event.
	want string
}

const (
	branch  = "feature/a" // with a slash, as people name branches
	ignored = "ignored"
)

// pushed is the event of a push of a commit to a ref.
func pushed(w Env, ref, sha string) *v1alpha1.GitEventSpec {
	return &v1alpha1.GitEventSpec{
		Trigger: v1alpha1.TriggerPush, SHA: sha, BaseRef: ref, HeadRef: ref, HeadURL: w.Project.URL, Project: w.Project,
	}
}

// commit pushes a file with this content to the branch.
func commit(w Env, branch, content string) string {
	return w.Service.Commit(branch, map[string]string{"x": content})
}

// opened opens a pull request from the branch and returns its event.
func opened(w Env) *v1alpha1.GitEventSpec {
	commit(w, branch, "a")
	return w.Service.PullRequest(branch, "dev")
}

func claimedPushes() map[string]claim {
	const wait = fault.ReasonNotConfirmed
	return map[string]claim{
		"a push to the tip of a branch": {func(w Env) *v1alpha1.GitEventSpec {
			return pushed(w, "refs/heads/"+branch, commit(w, branch, "a"))
		}, ""},
		"a push that was followed by others": {func(w Env) *v1alpha1.GitEventSpec {
			sha := commit(w, branch, "a")
			commit(w, branch, "b")
			return pushed(w, "refs/heads/"+branch, sha)
		}, ""},
		"a push that a forced push replaced": {func(w Env) *v1alpha1.GitEventSpec {
			base, sha := commit(w, branch, "base"), commit(w, branch, "a")
			w.Service.ForcePush(branch, base, nil)
			return pushed(w, "refs/heads/"+branch, sha)
		}, ""},
		"a push of another branch's commit": {func(w Env) *v1alpha1.GitEventSpec {
			commit(w, "main", "base")
			return pushed(w, "refs/heads/main", commit(w, branch, "a"))
		}, wait},
		"a push to a branch that never existed": {func(w Env) *v1alpha1.GitEventSpec {
			return pushed(w, "refs/heads/never", commit(w, branch, "a"))
		}, wait},
		"a tag that never existed": {func(w Env) *v1alpha1.GitEventSpec {
			return pushed(w, "refs/tags/v1", commit(w, branch, "a"))
		}, wait},
	}
}

func claimedPullRequests() map[string]claim {
	const wait = fault.ReasonNotConfirmed
	changed := func(change func(Env, *v1alpha1.GitEventSpec)) func(Env) *v1alpha1.GitEventSpec {
		return func(w Env) *v1alpha1.GitEventSpec {
			event := opened(w)
			change(w, event)
			return event
		}
	}
	return map[string]claim{
		"an older head of a pull request": {changed(func(w Env, _ *v1alpha1.GitEventSpec) {
			commit(w, branch, "b")
		}), ""},
		"a head that the pull request never had": {changed(func(w Env, event *v1alpha1.GitEventSpec) {
			event.SHA = commit(w, "another", "b")
		}), wait},
		"a pull request that never existed": {changed(func(_ Env, event *v1alpha1.GitEventSpec) {
			event.PullRequest.Number += 1000
		}), wait},
		"another author": {changed(func(_ Env, event *v1alpha1.GitEventSpec) {
			event.PullRequest.Author, event.PullRequest.AuthorID = "admin", event.PullRequest.AuthorID+1000
		}), ignored},
		"another head repository": {changed(func(_ Env, event *v1alpha1.GitEventSpec) {
			event.PullRequest.HeadProjectID += 1000
		}), ignored},
		"a pull request that was closed since": {changed(func(w Env, event *v1alpha1.GitEventSpec) {
			w.Service.Withdraw(event)
		}), ignored},
		"a comment that never existed": {func(w Env) *v1alpha1.GitEventSpec {
			event := w.Service.Comment(opened(w), "ada", "/deploy")
			event.Comment.ID += 1000
			return event
		}, wait},
		"a comment of another user": {func(w Env) *v1alpha1.GitEventSpec {
			event := w.Service.Comment(opened(w), "ada", "/deploy")
			event.Sender = "admin"
			return event
		}, ignored},
	}
}

// testForged is for a service that does not sign bodies. A sender who knows the token can post any
// body there. Complete confirms each body with the service, and waits for what may still become
// true.
func testForged(t *testing.T, open func(*testing.T) Env) {
	claims := claimedPushes()
	maps.Copy(claims, claimedPullRequests())
	for name, c := range claims {
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
			waits := c.want != "" && c.want != ignored
			if said != c.want || (got == nil) == (c.want == "") || waits && !fault.Is(err, fault.Transient) {
				t.Errorf("%+v, %v, want %q", got, err, c.want)
			}
		})
	}
}
