// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/forge"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// remarking is a comment on a commit whose branch is not known.
func remarking() *v1alpha1.GitEventSpec {
	spec := merging("on-comment", "create", 1001, func(s *v1alpha1.GitEventSpec) {
		s.Trigger, s.Commit, s.Actor, s.PullRequest, s.BaseRef, s.HeadRef = "push", nil, "", nil, "", ""
	})
	spec.Headers["X-Gitlab-Event"] = eventNote
	spec.Comment = &v1alpha1.Comment{ID: 1244, Body: "/retest please"}
	return spec
}

// remarked comments on a commit and decodes it.
func (b *bench) remarked(sha, body string) *v1alpha1.GitEventSpec {
	b.AddUser("ada")
	return b.decode(b.NoteDelivery(b.AddCommitNote(testProject, sha, "ada", body)))
}

// GitLab says where a branch or tag is now, and which the default branch is.
func TestCompleteCommentOnCommit(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	old := b.Commit("main", map[string]string{"x": "old"})
	slashed := b.Commit("feature/ü#1", map[string]string{"x": "a"})
	b.CreateTag(testProject, "v1", old, "ada")
	b.CreateTag(testProject, "v2", old, "ada")
	if b.Annotate(testProject, "v2") == old {
		t.Fatal("an annotated tag has an object of its own")
	}
	event := b.remarked(old, "/test")
	head := b.Commit("main", map[string]string{"x": "new"})
	event.Project.DefaultBranch = "forged"
	for ref, want := range map[string][2]string{
		"": {"refs/heads/main", head}, "refs/heads/main": {"refs/heads/main", head},
		"refs/heads/feature/ü#1": {"refs/heads/feature/ü#1", slashed},
		"refs/tags/v1":           {"refs/tags/v1", old}, "refs/tags/v2": {"refs/tags/v2", old},
	} {
		event.BaseRef = ref
		got, err := b.client.Complete(t.Context(), event)
		if err != nil {
			t.Fatal(ref, err)
		}
		expected := event.DeepCopy()
		expected.Project.DefaultBranch = "main"
		expected.BaseRef, expected.HeadRef, expected.SHA, expected.Commit = want[0], want[0], want[1], got.Commit
		expected.HappenedAt, expected.Project.OwnerID = got.HappenedAt, got.Project.OwnerID
		if d := cmp.Diff(expected, got); d != "" || got.Commit.Title != "a change" || got.HappenedAt == nil ||
			got.Project.OwnerID <= 0 {
			t.Errorf("%q: %+v %s", ref, got.Commit, d)
		}
	}
	for _, ref := range []string{"refs/heads/gone", "refs/tags/main", "refs/heads/v1"} {
		event.BaseRef = ref
		if got, err := b.client.Complete(t.Context(), event); got != nil || !fault.Is(err, fault.Ignored) ||
			!strings.Contains(err.Error(), testProject+" has no "+ref) {
			t.Errorf("%s: %+v, %v, want an Ignored fault", ref, got, err)
		}
	}
}

// S11: a sender that knows the token can claim that a user has commented, and on what. Only the
// comment that GitLab returns counts.
func TestCompleteConfirmsCommentOnCommit(t *testing.T) {
	const ignored = "ignored"
	for name, c := range map[string]struct {
		change func(b bench, event *v1alpha1.GitEventSpec)
		want   string
	}{
		"of another person": {func(_ bench, event *v1alpha1.GitEventSpec) { event.Sender = "admin" }, ignored},
		"that never was": {
			func(_ bench, event *v1alpha1.GitEventSpec) { event.Comment.ID += 1000 }, fault.ReasonNotConfirmed,
		},
		"on another commit": {func(b bench, event *v1alpha1.GitEventSpec) {
			event.SHA = b.Commit("main", map[string]string{"x": "other"})
		}, fault.ReasonNotConfirmed},
		"on no commit": {
			func(_ bench, event *v1alpha1.GitEventSpec) { event.SHA = strings.Repeat("ab", 20) }, fault.ReasonNotConfirmed,
		},
		"of another merge request": {func(b bench, event *v1alpha1.GitEventSpec) {
			event.Comment.ID = b.Comment(b.PullRequest("topic", "dev"), "ada", "/test").Comment.ID
		}, fault.ReasonNotConfirmed},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, forgelab.Options{})
			b.Commit("topic", map[string]string{"x": "z"})
			event := b.remarked(b.Commit("main", map[string]string{"x": "y"}), "/test")
			c.change(b, event)
			got, err := b.client.Complete(t.Context(), event)
			said := ""
			switch f := fault.Of(err); {
			case fault.Is(err, fault.Ignored):
				said = ignored
			case fault.Is(err, fault.Transient):
				said = f.Reason
			}
			if got != nil || said != c.want {
				t.Errorf("%+v, %v, want %s", got, err, c.want)
			}
		})
	}
	b := newBench(t, forgelab.Options{})
	event := b.remarked(b.Commit("main", map[string]string{"x": "y"}), "/test")
	b.EditNote(event.Comment.ID, "never mind")
	if got, err := b.client.Complete(t.Context(), event); err != nil || got.Comment.Body != "never mind" {
		t.Errorf("an edited comment: %+v, %v, want what it says now", got, err)
	}
}

// What is not known is retried: a missing branch or comment is never assumed (S12).
func TestCompleteWaitsForBranchOfCommit(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	event := b.remarked(b.Commit("main", map[string]string{"x": "y"}), "/test")
	for _, route := range []string{forgelab.RouteDiscussions, forgelab.RouteBranch, forgelab.RouteProject} {
		for name, do := range map[string]forge.Action{
			"an error": forge.ServerError502HTML(), "an empty object": forge.Answer(http.StatusOK, nil, `{}`),
			"null":   forge.Answer(http.StatusOK, nil, `null`),
			"a page": forge.Answer(http.StatusOK, http.Header{"Content-Type": {"text/html"}}, "<html>Log in</html>"),
		} {
			b.Inject(forgelab.Fault{Route: route, Count: 1, Do: do})
			if got, err := b.client.Complete(t.Context(), event); got != nil || !fault.Is(err, fault.Transient) {
				t.Errorf("%s: %s: %+v, %v, want a wait", route, name, got, err)
			}
		}
	}
}
