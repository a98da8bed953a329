// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// testSupersedes: an event is superseded by what Git has in its place now, and by nothing else.
func testSupersedes(t *testing.T, open func(*testing.T) Env) {
	cases := map[string]func(w Env) (event *v1alpha1.GitEventSpec, want string){
		"the head of a branch is current": func(w Env) (*v1alpha1.GitEventSpec, string) {
			return pushed(w, "refs/heads/"+branch, commit(w, branch, "a")), ""
		},
		"a commit that others were added to is current": func(w Env) (*v1alpha1.GitEventSpec, string) {
			sha := commit(w, branch, "a")
			commit(w, branch, "b")
			return pushed(w, "refs/heads/"+branch, sha), ""
		},
		"a commit that a forced push replaced is superseded by the tip": func(w Env) (*v1alpha1.GitEventSpec, string) {
			base, sha := commit(w, branch, "base"), commit(w, branch, "a")
			return pushed(w, "refs/heads/"+branch, sha), w.Service.ForcePush(branch, base, map[string]string{"x": "b"})
		},
		"a commit that a forced push removed is superseded by its parent": func(w Env) (*v1alpha1.GitEventSpec, string) {
			base, sha := commit(w, branch, "base"), commit(w, branch, "a")
			w.Service.ForcePush(branch, base, nil)
			return pushed(w, "refs/heads/"+branch, sha), base
		},
		"a branch that does not exist supersedes nothing": func(w Env) (*v1alpha1.GitEventSpec, string) {
			return pushed(w, "refs/heads/deleted", commit(w, branch, "a")), ""
		},
		"an unknown commit is not superseded": func(w Env) (*v1alpha1.GitEventSpec, string) {
			commit(w, branch, "a")
			return pushed(w, "refs/heads/"+branch, strings.Repeat("ab", 20)), ""
		},
		"a tag is not superseded": func(w Env) (*v1alpha1.GitEventSpec, string) {
			event := pushed(w, "refs/heads/"+branch, commit(w, branch, "a"))
			event.BaseRef = "refs/tags/v1"
			return event, ""
		},
		"the head of a pull request is current": func(w Env) (*v1alpha1.GitEventSpec, string) {
			return opened(w), ""
		},
		"any other head of a pull request supersedes it": func(w Env) (*v1alpha1.GitEventSpec, string) {
			event := opened(w)
			return event, commit(w, branch, "b")
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
	testUnreadable(t, open, provider.Client.Supersedes)
}
