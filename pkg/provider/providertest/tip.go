// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// testTip: the tip of a pull request or branch is what Git has now, whatever the event's commit is.
func testTip(t *testing.T, open func(*testing.T) Env) {
	cases := map[string]func(w Env) (event *v1alpha1.GitEventSpec, want string){
		"of a branch without later pushes": func(w Env) (*v1alpha1.GitEventSpec, string) {
			sha := commit(w, branch, "a")
			return pushed(w, "refs/heads/"+branch, sha), sha
		},
		"of a branch with a later push": func(w Env) (*v1alpha1.GitEventSpec, string) {
			return pushed(w, "refs/heads/"+branch, commit(w, branch, "a")), commit(w, branch, "b")
		},
		"of a branch that does not exist": func(w Env) (*v1alpha1.GitEventSpec, string) {
			return pushed(w, "refs/heads/deleted", commit(w, branch, "a")), ""
		},
		"of a tag": func(w Env) (*v1alpha1.GitEventSpec, string) {
			return pushed(w, "refs/tags/v1", commit(w, branch, "a")), ""
		},
		"of a pull request": func(w Env) (*v1alpha1.GitEventSpec, string) {
			return opened(w), commit(w, branch, "b")
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
	testUnreadable(t, open, provider.Client.Tip)
}

// testUnreadable: where the repository cannot be read, a missing branch is an error.
func testUnreadable(
	t *testing.T, open func(*testing.T) Env,
	read func(provider.Client, context.Context, *v1alpha1.GitEventSpec) (string, error),
) {
	t.Run("a repository that cannot be read is an error", func(t *testing.T) {
		w := open(t)
		event := pushed(w, "refs/heads/deleted", commit(w, branch, "a"))
		for how, class := range map[Failure]fault.Class{NotFound: fault.Operator, Unavailable: fault.Transient} {
			w.Service.Fail(ReadRepository, how, 1)
			if got, err := read(connect(t, w), t.Context(), event); got != "" || !fault.Is(err, class) {
				t.Errorf("%s: %q, %v, want a %s fault", how, got, err, class)
			}
		}
	})
}
