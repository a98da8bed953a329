// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ofBefore has the ways in which an event may belong to the deleted Repository that was there
// before the env's.
func ofBefore() map[string]func(*v1alpha1.GitEvent) {
	return map[string]func(*v1alpha1.GitEvent){
		"created again": func(e *v1alpha1.GitEvent) { e.Spec.Repository.UID = "before" },
		"spelled in another way": func(e *v1alpha1.GitEvent) {
			e.Spec.Repository.UID, e.Spec.Repository.URL = "before", "HTTPS://Git.example/Acme/app.git/"
		},
		"renamed": func(e *v1alpha1.GitEvent) { e.Spec.Repository.UID, e.Spec.Repository.Name = "before", "old-name" },
	}
}

// labelled has the label that the receiver of an event writes.
func labelled(e *v1alpha1.GitEvent) {
	e.Labels = map[string]string{plumbline.SubjectLabel: e.Spec.Subject()}
}

// A close or a /cancel stops runs from before the Repository was recreated, and none of another
// namespace.
func TestRecreatedRepositoryCancelsEarlierRuns(t *testing.T) {
	t.Parallel()
	for name, change := range ofBefore() {
		for _, action := range []string{"closed", "/cancel"} {
			t.Run(name+" "+action, func(t *testing.T) {
				t.Parallel()
				w := commands(t, "/cancel")
				if action == "closed" {
					w = newEnv(t, helloFile("hello"))
					w.pullRequest("closed", 0)
				}
				w.addEvent("before", "synchronize", -5*time.Second, change, labelled)
				w.addEvent("of-another-namespace", "synchronize", -5*time.Second,
					func(e *v1alpha1.GitEvent) { e.Spec.Repository.Namespace = "others" }, labelled)
				for range 3 {
					_, _ = w.reconcile()
				}
				if got := w.cancelledOnes(); !slices.Equal(got, []string{"before"}) {
					t.Errorf("%v are cancelled: %+v", got, w.event().Status)
				}
			})
		}
	}
}

// A record of an older version is found by its label.
func TestRunOfAnOlderVersionIsCancelled(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.pullRequest("closed", 10*time.Second)
	w.addEvent("before", "synchronize", 5*time.Second, func(e *v1alpha1.GitEvent) {
		_, e.Labels[plumbline.SubjectLabel], _ = strings.Cut(e.Spec.Subjects(), ",")
	})
	_, _ = w.reconcile()
	_, _ = w.reconcile()
	if got := w.cancelledOnes(); !slices.Equal(got, []string{"before"}) {
		t.Errorf("%v are cancelled: %+v", got, w.event().Status)
	}
}

// An event that is planned after the Repository was recreated finds that its pull request was
// closed before that.
func TestCloseOfARecreatedRepositoryIsFound(t *testing.T) {
	t.Parallel()
	for name, change := range ofBefore() {
		for _, late := range []time.Duration{0, time.Hour} {
			t.Run(name+" "+late.String(), func(t *testing.T) {
				t.Parallel()
				w := newEnv(t, annotated("hello", "on-event: pull_request", "on-target-branch: main"))
				closed := w.clock.Now()
				w.addEvent("closing", "closed", 0, change, labelled, func(e *v1alpha1.GitEvent) {
					e.Status.Plan = &v1alpha1.Plan{
						Reason: "PullRequestClosed", Cancels: &v1alpha1.Cancellation{Why: "closed", At: metav1.NewTime(closed)},
					}
				})
				w.edit(func(e *v1alpha1.GitEvent) {
					asPull(e, "synchronize", closed.Add(-time.Second), closed.Add(late))
					e.Spec.BaseRef = "main"
				})
				w.git.canWrite = func(string) (bool, error) { return true, nil }
				_, _ = w.reconcile()
				_, _ = w.reconcile()
				if len(w.runs()) != 0 {
					t.Errorf("%d runs were started: %+v", len(w.runs()), w.event().Status)
				}
			})
		}
	}
}

// cancel-in-progress stops the run of an older push although the Repository was recreated in
// between.
func TestNewerPushStopsARunOfARecreatedRepository(t *testing.T) {
	t.Parallel()
	for name, change := range ofBefore() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := pushes(t, 2, "'true'")
			_, _ = w.reconcileEvent("push-1")
			older := w.eventNamed("push-1")
			change(older)
			w.replaceEvent(older)
			for range 3 {
				_, _ = w.reconcileEvent("push-2")
				_, _ = w.reconcileEvent("push-1")
				w.advance(time.Second)
			}
			if told, started := w.annotations(); told != "1" || started != "2" {
				t.Errorf("told to end: %q, going on: %q", told, started)
			}
		})
	}
}

// The API server orders the records: a reopening that came after the close runs, also if its
// receiver's clock is behind, or that of the close's receiver is ahead.
func TestReceiversClocksDoNotOrderEvents(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]struct{ closed, reopened time.Duration }{
		"they agree":                     {0, 0},
		"the close's receiver is ahead":  {time.Hour, 0},
		"the reopening's is behind":      {0, -time.Hour},
		"the close's receiver is behind": {-time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, annotated("hello", "on-event: pull_request", "on-target-branch: main"))
			now := w.clock.Now()
			w.addEvent("closing", "closed", 0, func(e *v1alpha1.GitEvent) {
				e.CreationTimestamp, e.Spec.ReceivedAt = metav1.NewTime(now), metav1.NewTime(now.Add(skew.closed))
				e.Status.Plan = &v1alpha1.Plan{
					Reason: "PullRequestClosed", Cancels: &v1alpha1.Cancellation{Why: "closed", At: metav1.NewTime(now)},
				}
			})
			w.edit(func(e *v1alpha1.GitEvent) {
				asPull(e, "reopened", now, now.Add(time.Second+skew.reopened))
				e.Spec.BaseRef, e.CreationTimestamp = "main", metav1.NewTime(now.Add(time.Second))
			})
			w.git.canWrite = func(string) (bool, error) { return true, nil }
			_, _ = w.reconcile()
			_, _ = w.reconcile()
			if len(w.runs()) != 1 {
				t.Errorf("%d runs were started, want one: %+v", len(w.runs()), w.event().Status)
			}
		})
	}
}
