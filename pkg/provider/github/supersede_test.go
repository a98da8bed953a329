// SPDX-License-Identifier: Apache-2.0

package github

import (
	"net/http"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// An undocumented answer, and an outage of any call, is not an answer: the event is neither
// superseded nor current.
func TestSupersedesAcceptsOnlyDocumentedAnswers(t *testing.T) {
	unknown := forge.Answer(http.StatusOK, nil, `{}`)
	odd := forge.Answer(http.StatusOK, nil, `{"status":"odd","object":{"sha":"main"},"head":{"sha":"main"}}`)
	for _, route := range []string{forge.RouteRef, forge.RouteCompare, forge.RoutePull} {
		for name, do := range map[string]forge.Action{"empty": unknown, "odd": odd, "502": forge.ServerError502HTML(),
			"no answer": forge.Drop()} {
			b := newBench(t)
			base := b.Commit("topic", map[string]string{"x": "base"})
			event := &v1alpha1.GitEventSpec{
				Trigger: v1alpha1.TriggerPush, BaseRef: "refs/heads/topic", SHA: b.Commit("topic", map[string]string{"x": "a"}),
			}
			if route == forge.RoutePull {
				event = b.PullRequest("topic", "dev")
			}
			b.ForcePush("topic", base, map[string]string{"x": "b"})
			b.Inject(forge.Fault{Route: route, Do: do})
			if got, err := b.client.Supersedes(t.Context(), event); got != "" || !fault.Is(err, fault.Transient) {
				t.Errorf("%s of %s: %q, %v, want a Transient fault", name, route, got, err)
			}
		}
	}
}

// A tag costs no call, a branch that was not moved one, a pull request one.
func TestSupersedesCost(t *testing.T) {
	b := newBench(t)
	sha := b.Commit("topic", map[string]string{"x": "a"})
	pull := b.PullRequest("topic", "dev")
	if _, err := b.client.Supersedes(t.Context(), pull); err != nil { // also mints the token
		t.Fatal(err)
	}
	push := func(ref string) *v1alpha1.GitEventSpec {
		return &v1alpha1.GitEventSpec{Trigger: v1alpha1.TriggerPush, BaseRef: ref, SHA: sha}
	}
	for _, c := range []struct {
		event *v1alpha1.GitEventSpec
		want  int
	}{{push("refs/tags/v1"), 0}, {push("refs/heads/topic"), 1}, {pull, 1}} {
		before := b.Count("")
		if _, err := b.client.Supersedes(t.Context(), c.event); err != nil || b.Count("")-before != c.want {
			t.Errorf("%s: %d calls, %v, want %d", c.event.BaseRef, b.Count("")-before, err, c.want)
		}
	}
}
