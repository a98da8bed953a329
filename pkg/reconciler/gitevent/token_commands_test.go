// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

// requests are events that start a run again, or without an event of the Git service. own is true
// if they run the repository's own code.
func requests() map[string]struct {
	world func(t *testing.T) *env
	own   bool
} {
	return map[string]struct {
		world func(t *testing.T) *env
		own   bool
	}{
		"/retest":                   {func(t *testing.T) *env { return asked(t, "/retest", false) }, true},
		"/test of one pipeline":     {func(t *testing.T) *env { return asked(t, "/test hello", false) }, true},
		"a re-run button":           {func(t *testing.T) *env { return pressed(t) }, true},
		"a comment that starts one": {func(t *testing.T) *env { return deployed(t, "/deploy") }, true},
		"/test on a commit":         {func(t *testing.T) *env { return remarked(t, "/test", helloFile("hello")) }, true},
		"a button of a push":        {pressedOfPush, true},
		"a request to /incoming":    {func(t *testing.T) *env { return requestedEvent(t, helloFile("hello")) }, true},
		"an approved commit":        {func(t *testing.T) *env { return asked(t, "/ok-to-test", true) }, false},
		"/test of a stranger's":     {func(t *testing.T) *env { return asked(t, "/test", true) }, false},
		"a writer's own fork":       {func(t *testing.T) *env { return ofFork(asked(t, "/retest", false)) }, false},
		"a button of a fork":        {func(t *testing.T) *env { return ofFork(pressed(t)) }, false},
		"a comment on a fork":       {func(t *testing.T) *env { return ofFork(deployed(t, "/deploy")) }, false},
	}
}

// requireToken requires the token of the event's run, and again after another process has renewed
// it.
func (w *env) requireToken(t *testing.T, right func() (diff string), forget func()) {
	t.Helper()
	w.ends = ""
	w.edit(func(e *v1alpha1.GitEvent) {
		if e.Spec.Incoming == nil { // its installation is found
			e.Spec.InstallationID = 1
		}
	})
	for range 4 {
		_, _ = w.reconcile()
		w.advance(time.Minute)
	}
	if n := len(w.runs()); n != 1 {
		t.Fatalf("%d runs: %+v, %+v", n, w.event().Status.Plan, w.event().Status.Waits)
	}
	if diff := right(); diff != "" {
		t.Error("the first token:", diff)
	}
	forget()
	minted := len(w.git.tokens)
	w.kill() // another process knows only the record
	w.advance(31 * time.Minute)
	_, _ = w.reconcile()
	if diff := right(); diff != "" || len(w.git.tokens) == minted {
		t.Errorf("the renewed token, number %d: %s", len(w.git.tokens), diff)
	}
}

// A run that a command, a comment or a button starts has the same token as the event's own run,
// also after another process has renewed it. The code of a fork, and a commit that needed an
// approval, only read.
func TestRequestedRunsHaveTheTokenOfTheOwnRun(t *testing.T) {
	t.Parallel()
	for name, test := range requests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := test.world(t)
			w.settings = map[string]string{"run-token-permissions": "pull_requests: write"}
			w.repository = func(r *pacv1alpha1.Repository) {
				r.Spec.Settings = &pacv1alpha1.Settings{
					RunTokenPermissions:   map[string]pacv1alpha1.PermissionLevel{"pull_requests": "write"},
					PipelineRunProvenance: "source",
				}
			}
			want := map[string]string{"contents": "read", "metadata": "read"}
			if test.own {
				want["pull_requests"] = "write"
			}
			w.requireToken(t, func() string { return cmp.Diff(want, w.git.permissions) }, func() { w.git.permissions = nil })
		})
	}
}

// The same runs reach the other repositories that are listed.
func TestRequestedRunsReachListedRepositories(t *testing.T) {
	t.Parallel()
	for name, test := range requests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := test.world(t)
			w.settings = map[string]string{"secret-github-app-scope-extra-repos": "acme/lib"}
			w.git.covered = []v1alpha1.Project{library()}
			w.repository = func(r *pacv1alpha1.Repository) {
				r.Spec.Settings = &pacv1alpha1.Settings{PipelineRunProvenance: "source"}
			}
			want := []v1alpha1.Project(nil)
			if test.own {
				want = []v1alpha1.Project{library()}
			}
			w.requireToken(t, func() string { return cmp.Diff(want, w.git.others) }, func() { w.git.others = nil })
		})
	}
}

// pressed returns a re-run request of a pull request whose one pipeline has failed.
func pressed(t *testing.T) *env {
	t.Helper()
	w := retested(t, "", true, false)
	w.must(w.own.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), system, earlier))
	return w
}

// pressedOfPush returns a re-run request of a push whose one pipeline has failed.
func pressedOfPush(t *testing.T) *env {
	t.Helper()
	w := pressed(t)
	w.git.files = []git.File{helloFile("hello")}
	first := w.eventNamed("first")
	first.Spec = event().Spec
	first.Labels = map[string]string{plumbline.SubjectLabel: first.Spec.Subject()}
	w.replaceEvent(first)
	w.edit(func(e *v1alpha1.GitEvent) {
		e.Spec.Rerun.Pulls, e.Spec.BaseRef, e.Spec.HeadRef = nil, "", ""
		e.Labels = first.Labels
	})
	w.git.complete = nil
	return w
}

// deployed returns a comment without a command that starts a pipeline.
func deployed(t *testing.T, says string) *env {
	t.Helper()
	w := asked(t, says, false)
	w.git.files = []git.File{annotated("hello", "on-comment: ^/deploy")}
	return w
}

// ofFork moves the head of the pull request into a fork, whose author may write.
func ofFork(w *env) *env {
	fork := w.forkAt(sha)
	w.git.complete = func(e *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
		e, err := fork(e)
		e.PullRequest.Author = "author"
		return e, err
	}
	first := w.eventNamed("first")
	first.Spec.PullRequest.HeadProjectID, first.Spec.PullRequest.Author = 99, "author"
	w.replaceEvent(first)
	return w
}
