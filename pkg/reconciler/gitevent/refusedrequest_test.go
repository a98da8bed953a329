// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

var (
	errTooLong = fault.Transientf(fault.ReasonGitUnavailable,
		"comparing with the commit before the push: GET /compare: 500 Server Error: Sorry, this diff is taking too long to generate.")
	errBlob    = fault.Transientf(fault.ReasonGitUnavailable, "reading .tekton/a.yaml: GET /git/blobs: 500 Server Error")
	errAllDown = fault.Transientf(fault.ReasonGitUnavailable, "GET /: 503 Service Unavailable")
)

// tooLong returns a service that refuses comparisons and returns what a commit has changed itself.
func tooLong(own ...string) func(*v1alpha1.GitEventSpec) (git.Changes, error) {
	return func(e *v1alpha1.GitEventSpec) (git.Changes, error) {
		if e.Before != "" || e.PullRequest != nil {
			return git.Changes{}, errTooLong
		}
		return git.Changes{Added: own}, nil
	}
}

// refusing returns an env whose push replaced a commit, at a service that refuses one request.
func refusing(t *testing.T, files ...git.File) *env {
	t.Helper()
	w := received(t)
	w.git.files = files
	w.edit(func(e *v1alpha1.GitEvent) { e.Spec.Before = strings.Repeat("ab", 20) })
	return w
}

// retryFor reconciles every five minutes. Each time it is another process that knows only what is
// recorded.
func (w *env) retryFor(passed time.Duration) {
	w.t.Helper()
	for began := w.clock.Now(); w.clock.Now().Sub(began) < passed; w.advance(5 * time.Minute) {
		_, _ = w.reconcile()
		w.kill()
	}
}

// planShows returns what the check of the plan shows, "" if there is none.
func (w *env) planShows() (shows string) {
	for _, check := range w.git.checks {
		if strings.HasSuffix(check.Name, " / .tekton") {
			shows = string(check.State) + string(check.Conclusion) + ": " + check.Title + "\n" + check.Text
		}
	}
	return shows
}

func (w *env) wantShown(t *testing.T, words ...string) {
	t.Helper()
	shown := w.planShows()
	for _, word := range words {
		if !strings.Contains(shown, word) {
			t.Errorf("the commit shows %q, want %q", shown, word)
		}
	}
}

func (w *env) wantNeverFailed(t *testing.T) {
	t.Helper()
	for _, write := range w.git.writes {
		if write.Conclusion == status.Failure {
			t.Errorf("%s was told to have failed: %s", write.Name, write.Text)
		}
	}
}

// A refused comparison is waited for, with a check that says so, and delays no pipeline that does
// not need it. After an hour the commit's own files decide.
func TestRefusedComparisonIsShownThenSkipped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		own  string
		want map[string]status.Conclusion
		note string
	}{
		"its own files match": {"docs/a.md", map[string]status.Conclusion{
			"hello": status.Success, "docs": status.Success, ".tekton": status.Skipped,
		}, "did not list all changed files"},
		"its own files do not": {
			"main.go", map[string]status.Conclusion{"hello": status.Success, ".tekton": status.Skipped}, "",
		},
	} {
		for _, pull := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := refusing(t, annotated("docs", "on-path-change: 'docs/**'"), helloFile("hello"))
				if pull {
					w.git.files = []git.File{annotated("docs", "on-event: pull_request", "on-target-branch: main",
						"on-path-change: 'docs/**'"),
						annotated("hello", "on-event: pull_request", "on-target-branch: main")}
					w.pullRequest("opened", 0)
				}
				w.git.changes = tooLong(c.own)
				w.retryFor(10 * time.Minute)
				w.wantShown(t, "queued", "Waiting for the Git service", "since 00:00 UTC on 1 January",
					"this diff is taking too long")
				if len(w.runs()) != 1 {
					t.Errorf("%d runs, want hello's", len(w.runs()))
				}
				w.retryFor(45 * time.Minute)
				if got := w.reasons()["docs"]; !strings.HasPrefix(got, "waiting: ") {
					t.Errorf("docs before the hour: %q", got)
				}
				w.retryFor(15 * time.Minute)
				w.settle(corev1.ConditionTrue)
				if diff := cmp.Diff(c.want, w.conclusions()); diff != "" {
					t.Error(diff)
				}
				if got := w.reasons()["docs"]; !strings.Contains(got, "the Git service did not list all changed files") &&
					c.note != "" {
					t.Errorf("docs: %q, want it to be called incomplete", got)
				}
				w.wantNeverFailed(t)
			})
		}
	}
}

// The service refuses the request now with an answer, now with none: it is one wait, with one
// start.
func TestRefusalWithChangingTextIsOneWait(t *testing.T) {
	t.Parallel()
	w := refusing(t, annotated("docs", "on-path-change: 'docs/**'"), helloFile("hello"))
	asked := 0
	w.git.changes = func(e *v1alpha1.GitEventSpec) (git.Changes, error) {
		if asked++; e.Before != "" && asked%2 == 0 {
			return git.Changes{}, fault.Transientf(fault.ReasonTimeout,
				"comparing with the commit before the push: GET /compare: no answer in 30s")
		}
		return tooLong("docs/a.md")(e)
	}
	for range 10 { // the reason is another one each time
		_, _ = w.reconcile()
		w.advance(time.Minute)
	}
	w.wantShown(t, "queued", "since 00:00 UTC on 1 January")
	w.retryFor(time.Hour)
	w.settle(corev1.ConditionTrue)
	want := map[string]status.Conclusion{"hello": status.Success, "docs": status.Success, ".tekton": status.Skipped}
	if diff := cmp.Diff(want, w.conclusions()); diff != "" {
		t.Error(diff)
	}
}

// An event of which nothing is decided shows the same, and ends like any other that is for no
// pipeline.
func TestRefusedComparisonWithoutPipelinesShowsNothing(t *testing.T) {
	t.Parallel()
	w := refusing(t, annotated("docs", "on-path-change: 'docs/**'"))
	w.git.changes = tooLong("main.go")
	w.retryFor(time.Minute)
	if w.planShows() != "" {
		t.Errorf("a short wait shows %q", w.planShows())
	}
	w.retryFor(20 * time.Minute)
	w.wantShown(t, "queued", "Waiting for the Git service")
	w.retryFor(time.Hour)
	w.settle(corev1.ConditionTrue)
	w.wantShown(t, "completedskipped")
	if e := w.event(); e.Status.Disposition != v1alpha1.DispositionIgnored || len(w.runs()) != 0 {
		t.Errorf("disposition %s, %d runs", e.Status.Disposition, len(w.runs()))
	}
}

// An answer that comes in time decides, and the check that showed the wait is concluded.
func TestEndedRefusalGoesOn(t *testing.T) {
	t.Parallel()
	w := refusing(t, helloFile("hello"))
	w.git.filesErr = errBlob
	w.retryFor(30 * time.Minute)
	w.wantShown(t, "queued", "reading .tekton/a.yaml")
	w.git.filesErr = nil
	w.settle(corev1.ConditionTrue)
	if diff := cmp.Diff(map[string]status.Conclusion{"hello": status.Success, ".tekton": status.Skipped},
		w.conclusions()); diff != "" {
		t.Error(diff)
	}
	w.wantNeverFailed(t)
}

// A refusal after some pipelines were decided is shown as well.
func TestRefusalAfterSomePipelinesStarted(t *testing.T) {
	t.Parallel()
	w := refusing(t, annotated("docs", "on-path-change: 'docs/**'"), helloFile("hello"))
	w.git.changes = tooLong("docs/a.md")
	_, _ = w.reconcile()
	w.git.filesErr = errBlob
	w.retryFor(30 * time.Minute)
	w.wantShown(t, "queued", "reading .tekton/a.yaml")
	w.git.filesErr, w.git.changes, w.git.changed = nil, nil, git.Changes{Added: []string{"docs/a.md"}}
	w.settle(corev1.ConditionTrue)
	want := map[string]status.Conclusion{"hello": status.Success, "docs": status.Success, ".tekton": status.Skipped}
	if diff := cmp.Diff(want, w.conclusions()); diff != "" {
		t.Error(diff)
	}
}

// An event whose definitions are refused each time is given up when no event waits any longer. It
// may be redelivered.
func TestPermanentlyRefusedDefinitionsAreGivenUp(t *testing.T) {
	t.Parallel()
	w := refusing(t, helloFile("hello"))
	w.git.filesErr = errBlob
	w.retryFor(2 * time.Hour)
	w.wantShown(t, "queued", "reading .tekton/a.yaml", "since 00:00 UTC on 1 January")
	var told []string
	if after := w.reconcileEvery(30*time.Minute, 4*oneDay, &told); after < 0 || after > 3*oneDay {
		t.Fatalf("ended after %v, want 3 days since it was received", after)
	}
	w.wantGivenUp("GivenUp", told)
	w.wantShown(t, "completedcancelled", "reading .tekton/a.yaml")
	if !w.event().MayRunAgain() {
		t.Error("its redelivery is not processed")
	}
	w.wantNeverFailed(t)
}

// While the service answers nothing an event waits, however long: nothing is decided by less, and
// nothing given up.
func TestOutageIsNoRefusal(t *testing.T) {
	t.Parallel()
	w := refusing(t, annotated("docs", "on-path-change: 'docs/**'"))
	w.git.err, w.git.changes = errAllDown,
		func(*v1alpha1.GitEventSpec) (git.Changes, error) { return git.Changes{}, errAllDown }
	var told []string
	if after := w.reconcileEvery(time.Hour, 5*oneDay, &told); after >= 0 {
		t.Fatalf("ended after %v: %+v", after, w.event().Status.Plan)
	}
	if len(w.git.writes) != 0 {
		t.Errorf("the commit was told %v", w.git.writes)
	}
	w.git.err, w.git.changes = nil, func(e *v1alpha1.GitEventSpec) (git.Changes, error) {
		if e.Before == "" {
			t.Error("the commit's own files were taken for the push's")
		}
		return git.Changes{Added: []string{"docs/a.md"}}, nil
	}
	w.settle(corev1.ConditionTrue)
	w.wantNeverFailed(t)
	if diff := cmp.Diff(map[string]status.Conclusion{"docs": status.Success}, w.conclusions()); diff != "" {
		t.Error(diff)
	}
}

// A refusal has another message each time, and sometimes the service does not answer in time: it is
// one refusal.
func TestRefusalWithAnotherReasonEachTimeIsGivenUp(t *testing.T) {
	t.Parallel()
	words := func(what string) []error {
		return []error{
			fault.Transientf(fault.ReasonGitUnavailable, "%s: GET /x: 500 Server Error", what),
			fault.Transientf(fault.ReasonTimeout, "%s: GET /x: no answer within 30s", what),
			fault.Transientf(fault.ReasonGitUnreachable, "%s: GET /x: EOF", what),
		}
	}
	w, n := refusing(t, annotated("docs", "on-path-change: 'docs/**'"), helloFile("hello")), 0
	w.git.changes = func(e *v1alpha1.GitEventSpec) (git.Changes, error) {
		if e.Before == "" {
			return git.Changes{Added: []string{"docs/a.md"}}, nil
		}
		n++
		return git.Changes{}, words("comparing with the commit before the push")[n%3]
	}
	w.retryFor(75 * time.Minute)
	if got := w.reasons()["docs"]; !strings.Contains(got, "did not list all changed files") {
		t.Errorf("docs after more than an hour: %q", got)
	}

	w = refusing(t, helloFile("hello"))
	var told []string
	for passed := time.Duration(0); !w.event().Settled(); passed += 30 * time.Minute {
		w.git.filesErr = words("reading .tekton/a.yaml")[int(passed/(30*time.Minute))%3]
		if _ = w.reconcileTelling(&told); passed > 3*oneDay {
			t.Fatalf("it waits after %v", passed)
		}
		w.advance(30 * time.Minute)
	}
	w.wantGivenUp("GivenUp", told)
}
