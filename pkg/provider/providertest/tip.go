// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// testTip: the newest commit of a pull request or branch is what Git has now, whatever the event's
// is.
func testTip(t *testing.T, open func(*testing.T) World) {
	const branch = "feature/a"
	pushed := func(w World, ref string) *v1alpha1.GitEventSpec {
		return &v1alpha1.GitEventSpec{
			Trigger: v1alpha1.TriggerPush,
			SHA:     w.Service.Commit(branch, map[string]string{"x": "a"}),
			BaseRef: ref,
			HeadRef: ref,
			Project: w.Project,
		}
	}
	cases := map[string]func(w World) (event *v1alpha1.GitEventSpec, want string){
		"of a branch that nobody has pushed to since": func(w World) (*v1alpha1.GitEventSpec, string) {
			event := pushed(w, "refs/heads/"+branch)
			return event, event.SHA
		},
		"of a branch that was pushed on": func(w World) (*v1alpha1.GitEventSpec, string) {
			event := pushed(w, "refs/heads/"+branch)
			return event, w.Service.Commit(branch, map[string]string{"x": "b"})
		},
		"of a branch that is not there": func(w World) (*v1alpha1.GitEventSpec, string) { return pushed(w, "refs/heads/deleted"), "" },
		"of a tag":                      func(w World) (*v1alpha1.GitEventSpec, string) { return pushed(w, "refs/tags/v1"), "" },
		"of a pull request": func(w World) (*v1alpha1.GitEventSpec, string) {
			w.Service.Commit(branch, map[string]string{"x": "a"})
			event := w.Service.PullRequest(branch, "dev")
			return event, w.Service.Commit(branch, map[string]string{"x": "b"})
		},
	}
	for name, prepare := range cases {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			event, want := prepare(w)
			if got, err := connect(t, w).Tip(t.Context(), event); err != nil || got != want {
				t.Errorf("%q, %v, want %q", got, err, want)
			}
		})
	}
	t.Run("a repository that cannot be read says nothing", func(t *testing.T) {
		w := open(t)
		event := pushed(w, "refs/heads/deleted")
		for how, class := range map[Failure]fault.Class{NotFound: fault.Operator, Unavailable: fault.Transient} {
			w.Service.Fail(ReadRepository, how, 1)
			if got, err := connect(t, w).Tip(t.Context(), event); got != "" || !fault.Is(err, class) {
				t.Errorf("%s: %q, %v, want a %s fault", how, got, err, class)
			}
		}
	})
}
