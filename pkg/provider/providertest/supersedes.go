// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// testSupersedes: an event gives way to what Git has in its place now, and to nothing else.
func testSupersedes(t *testing.T, open func(*testing.T) World) {
	pushed := func(w World, branch, sha string) *v1alpha1.GitEventSpec {
		return &v1alpha1.GitEventSpec{
			Trigger: v1alpha1.TriggerPush,
			SHA:     sha,
			BaseRef: "refs/heads/" + branch,
			HeadRef: "refs/heads/" + branch,
			Project: w.Project,
		}
	}
	const branch = "feature/a" // with a slash, as people name branches
	cases := map[string]func(w World) (event *v1alpha1.GitEventSpec, want string){
		"the head of a branch is current": func(w World) (*v1alpha1.GitEventSpec, string) {
			return pushed(w, branch, w.Service.Commit(branch, map[string]string{"x": "a"})), ""
		},
		"a commit that others were added to is current": func(w World) (*v1alpha1.GitEventSpec, string) {
			sha := w.Service.Commit(branch, map[string]string{"x": "a"})
			w.Service.Commit(branch, map[string]string{"x": "b"})
			return pushed(w, branch, sha), ""
		},
		"a commit that a forced push replaced gives way to the tip": func(w World) (*v1alpha1.GitEventSpec, string) {
			base := w.Service.Commit(branch, map[string]string{"x": "base"})
			sha := w.Service.Commit(branch, map[string]string{"x": "a"})
			return pushed(w, branch, sha), w.Service.ForcePush(branch, base, map[string]string{"x": "b"})
		},
		"a commit that a forced push took back gives way to the one before": func(w World) (*v1alpha1.GitEventSpec, string) {
			base := w.Service.Commit(branch, map[string]string{"x": "base"})
			sha := w.Service.Commit(branch, map[string]string{"x": "a"})
			w.Service.ForcePush(branch, base, nil)
			return pushed(w, branch, sha), base
		},
		"a branch that is not there replaces nothing": func(w World) (*v1alpha1.GitEventSpec, string) {
			return pushed(w, "deleted", w.Service.Commit(branch, map[string]string{"x": "a"})), ""
		},
		"a commit that is not known is not replaced": func(w World) (*v1alpha1.GitEventSpec, string) {
			w.Service.Commit(branch, map[string]string{"x": "a"})
			return pushed(w, branch, strings.Repeat("ab", 20)), ""
		},
		"a tag is not replaced": func(w World) (*v1alpha1.GitEventSpec, string) {
			event := pushed(w, branch, w.Service.Commit(branch, map[string]string{"x": "a"}))
			event.BaseRef = "refs/tags/v1"
			return event, ""
		},
		"the head of a pull request is current": func(w World) (*v1alpha1.GitEventSpec, string) {
			w.Service.Commit(branch, map[string]string{"x": "a"})
			return w.Service.PullRequest(branch, "dev"), ""
		},
		"any other head of a pull request takes its place": func(w World) (*v1alpha1.GitEventSpec, string) {
			w.Service.Commit(branch, map[string]string{"x": "a"})
			event := w.Service.PullRequest(branch, "dev")
			return event, w.Service.Commit(branch, map[string]string{"x": "b"})
		},
	}
	for name, prepare := range cases {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			event, want := prepare(w)
			if got, err := connect(t, w).Supersedes(t.Context(), event); err != nil || got != want {
				t.Errorf("%q, %v, want %q", got, err, want)
			}
		})
	}
	t.Run("a repository that cannot be read says nothing", func(t *testing.T) {
		w := open(t)
		event := pushed(w, "deleted", w.Service.Commit(branch, map[string]string{"x": "a"}))
		for how, class := range map[Failure]fault.Class{NotFound: fault.Operator, Unavailable: fault.Transient} {
			w.Service.Fail(ReadRepository, how, 1)
			if got, err := connect(t, w).Supersedes(t.Context(), event); got != "" || !fault.Is(err, class) {
				t.Errorf("%s: %q, %v, want a %s fault", how, got, err, class)
			}
		}
	})
}
