// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/scope"
)

// library is another repository of the installation.
func library() v1alpha1.Project { return v1alpha1.Project{Owner: "acme", Name: "lib", ID: 8} }

// scoped returns an event of an App whose installation covers acme/lib, which the administrator has
// listed. Its pipeline refers to a file.
func scoped(t *testing.T) *env {
	t.Helper()
	w := newEnv(t, referring("hello", "lint", "https://git.example/lint"))
	w.git.tree = map[string]string{"lint": taskText("lint")}
	w.edit(func(e *v1alpha1.GitEvent) { e.Spec.InstallationID = 7 })
	w.settings = map[string]string{"secret-github-app-scope-extra-repos": "acme/lib"}
	w.git.covered = []v1alpha1.Project{library(), {Owner: "acme", Name: "secret", ID: 9}}
	return w
}

// The run's token and the reads of references reach the listed repositories, and so does the token
// after another process has renewed it.
func TestTokensReachListedRepositories(t *testing.T) {
	t.Parallel()
	w := scoped(t)
	for range 3 {
		_, _ = w.reconcile()
	}
	want := []v1alpha1.Project{library()}
	if diff := cmp.Diff(want, w.git.othersRead); diff != "" {
		t.Error("the reference is read with:", diff)
	}
	if diff := cmp.Diff(want, w.git.others); diff != "" || len(w.runs()) != 1 {
		t.Errorf("the token of %d runs: %s", len(w.runs()), diff)
	}
	w.git.others = nil
	w.kill()
	w.advance(31 * time.Minute)
	_, _ = w.reconcile()
	if diff := cmp.Diff(want, w.git.others); diff != "" {
		t.Error("the renewed token:", diff)
	}
}

// The code of a fork reads the event's repository alone.
func TestForksReachNoOtherRepository(t *testing.T) {
	t.Parallel()
	w := scoped(t)
	w.fromFork() // of a user who may write
	w.edit(func(e *v1alpha1.GitEvent) { e.Spec.Actor = "stranger" })
	w.git.files[0].Data = bytes.Replace(w.git.files[0].Data, []byte("[push]"), []byte("[pull_request]"), 1)
	for range 3 {
		_, _ = w.reconcile()
	}
	if len(w.runs()) != 1 || len(w.git.tokens) != 1 {
		t.Fatalf("%d runs, %d tokens: %+v", len(w.runs()), len(w.git.tokens), w.event().Status)
	}
	if len(w.git.others)+len(w.git.othersRead)+w.git.listed != 0 {
		t.Errorf("the token reaches %+v, the reference is read with %+v", w.git.others, w.git.othersRead)
	}
}

// A Repository that lists others without being allowed to waits for the administrator: no token is
// minted, and the run starts once the list is allowed or gone.
func TestRefusedListWaits(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.edit(func(e *v1alpha1.GitEvent) { e.Spec.InstallationID = 7 })
	w.repository = func(r *pacv1alpha1.Repository) {
		r.Spec.Settings = &pacv1alpha1.Settings{GithubAppTokenScopeRepos: []string{"acme/lib"}}
	}
	for range 3 {
		_, _ = w.reconcile()
	}
	waits := w.event().Status.Waits
	if len(w.git.tokens) != 0 || len(w.runs()) != 0 || len(waits) != 1 || waits[0].Reason != scope.ReasonRefused {
		t.Fatalf("%d tokens, %d runs, waits %+v", len(w.git.tokens), len(w.runs()), waits)
	}
	w.repository = nil
	w.advance(time.Hour)
	for range 3 {
		_, _ = w.reconcile()
	}
	if len(w.runs()) != 1 {
		t.Errorf("%d runs after the list is gone, waits %+v", len(w.runs()), w.event().Status.Waits)
	}
}

// The lists are refused, or nothing in the namespace owns what they name, while a run exists: its
// token is renewed, without the other repositories.
func TestRunKeepsItsTokenWithoutTheList(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]map[string]string{
		"refused": nil, "not owned": {"secret-github-app-token-scoped": "false"},
	} {
		w := scoped(t)
		for range 3 {
			_, _ = w.reconcile()
		}
		w.settings = settings
		w.repository = func(r *pacv1alpha1.Repository) {
			r.Spec.Settings = &pacv1alpha1.Settings{GithubAppTokenScopeRepos: []string{"acme/lib"}}
		}
		w.advance(31 * time.Minute)
		_, _ = w.reconcile()
		if n := len(w.git.tokens); n != 2 || len(w.git.others) != 0 {
			t.Errorf("%s: %d tokens, the last reaches %+v; waits %+v", name, n, w.git.others, w.event().Status.Waits)
		}
	}
}
