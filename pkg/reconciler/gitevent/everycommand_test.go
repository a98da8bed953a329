// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// asked returns an env with a comment on a pull request, of this repository or of an untrusted
// user's fork, whose one pipeline has failed or waits for approval.
func asked(t *testing.T, comment string, stranger bool) *env {
	t.Helper()
	w := retested(t, comment, false, false)
	w.must(w.own.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), system, earlier))
	w.ends = corev1.ConditionTrue
	if !stranger {
		return w
	}
	w.git.complete = w.forkAt(sha)
	w.git.canWrite = func(user string) (bool, error) { return user == "member", nil }
	first := w.eventNamed("first")
	first.Spec.PullRequest.HeadProjectID, first.Spec.PullRequest.Author = 99, "author"
	first.Status.Disposition, first.Status.Plan.Reason, first.Status.Runs = v1alpha1.DispositionPending, "PendingApproval",
		nil
	w.replaceEvent(first)
	return w
}

// onService returns how a call may fail. On a service where a late write reopens a check only the
// calls that had an effect can go another way.
func onService(reopens bool) (name string, faults map[string]outcome) {
	faults = failures()
	if !reopens {
		return "checks", faults
	}
	return "statuses", map[string]outcome{"applied": faults["applied"], "killed after": faults["killed after"]}
}

// C9 for commands: whatever call of a comment's event fails, is lost or is the last one of its
// process, there is one set of runs, each check is true, and an approval is recorded. This includes
// services where a late write reopens a check.
func TestCommandSurvivesAnyFailedCall(t *testing.T) {
	t.Parallel()
	for comment, stranger := range map[string]bool{"/test": false, "/retest": false, "/ok-to-test": true} {
		for _, reopens := range []bool{false, true} {
			service, faults := onService(reopens)
			t.Run(comment[1:]+"/"+service, func(t *testing.T) {
				t.Parallel()
				atEachCall(t, faults, func(t *testing.T) *env {
					w := asked(t, comment, stranger)
					w.git.reopens, w.calls = reopens, nil
					return w
				}, func(t *testing.T, w *env) { w.wantOneSet(t, stranger) })
			})
		}
	}
}

func (w *env) wantOneSet(t *testing.T, approved bool) {
	t.Helper()
	e, runs := w.event(), w.runs()
	if len(e.Status.Runs) != 1 || (e.Status.Plan.Approval != nil) != approved || w.secrets() != 1 {
		t.Fatalf("%d runs are recorded, approval %+v, %d secrets: %+v", len(e.Status.Runs), e.Status.Plan.Approval,
			w.secrets(), e.Status)
	}
	want := status.Success
	if e.Status.Runs[0].Refused != nil { // the create was denied
		want = status.Failure
	}
	if (len(runs) == 1) != (want == status.Success) || len(runs) > 1 {
		t.Errorf("%d PipelineRuns, %+v", len(runs), e.Status.Runs[0])
	}
	for _, run := range runs {
		if (run.Labels[plumbline.TrustLabel] == plumbline.TrustUntrusted) != approved {
			t.Errorf("labels %v of what somebody approved: %t", run.Labels, approved)
		}
	}
	var ends []status.Conclusion
	for _, check := range w.git.checks {
		if check.ExternalID == e.Status.Runs[0].Name {
			ends = append(ends, check.Conclusion)
		}
	}
	if !slices.Equal(ends, []status.Conclusion{want}) {
		t.Errorf("the run's checks say %v, want %s once: %v", ends, want, w.git.checks)
	}
}

// The same for /cancel: the event whose run is stopped is annotated, once, and nothing is started
// or reported.
func TestCancelCommandSurvivesAnyFailedCall(t *testing.T) {
	t.Parallel()
	atEveryCall(t, func(t *testing.T) *env {
		w := asked(t, "/cancel", false)
		w.addEvent("before", "synchronize", -time.Minute, func(e *v1alpha1.GitEvent) {
			e.Status.Plan = &v1alpha1.Plan{HeadSHA: sha, Reason: "Selected"}
			e.Status.Runs = []v1alpha1.Run{{Pipeline: "hello", Namespace: tenant, Name: "before-run", UID: "1"}}
		})
		w.addEvent("after", "synchronize", time.Minute)
		w.calls = nil
		return w
	}, func(t *testing.T, w *env) {
		if got := w.cancelledOnes(); !slices.Equal(got, []string{"before"}) || len(w.git.writes) != 0 || len(w.runs()) != 0 ||
			w.event().Status.Disposition != v1alpha1.DispositionCancels {
			t.Errorf("%v are cancelled, %d reports, %d runs, %+v", got, len(w.git.writes), len(w.runs()), w.event().Status)
		}
	})
}

// And for commands on a pushed commit, which mean one branch.
func TestCommitCommandSurvivesAnyFailedCall(t *testing.T) {
	t.Parallel()
	for _, comment := range []string{"/test branch:main", "/retest branch:main"} {
		for _, reopens := range []bool{false, true} {
			service, faults := onService(reopens)
			t.Run(comment[1:7]+"/"+service, func(t *testing.T) {
				t.Parallel()
				atEachCall(t, faults, func(t *testing.T) *env {
					w := remarked(t, comment, helloFile("hello"))
					w.git.reopens, w.ends, w.calls = reopens, corev1.ConditionTrue, nil
					return w
				}, func(t *testing.T, w *env) {
					w.wantOneSet(t, false)
					if e := w.event(); e.Status.Plan.Ref != "refs/heads/main" || e.Status.Plan.HeadSHA != sha {
						t.Errorf("it ran %s of %s", e.Status.Plan.HeadSHA, e.Status.Plan.Ref)
					}
				})
			})
		}
	}
}

// And for a /cancel there: the event of that branch is annotated, the event of another branch is
// not.
func TestCommitCancelSurvivesAnyFailedCall(t *testing.T) {
	t.Parallel()
	atEveryCall(t, func(t *testing.T) *env {
		w := remarked(t, "/cancel branch:main", helloFile("hello"))
		for _, branch := range []string{"main", "release"} {
			w.addEvent("on-"+branch, "", -time.Minute, func(e *v1alpha1.GitEvent) {
				e.Spec.Trigger, e.Spec.EventType, e.Spec.PullRequest = v1alpha1.TriggerPush, "push", nil
				e.Spec.BaseRef, e.Spec.HeadRef = "refs/heads/"+branch, "refs/heads/"+branch
				e.Labels = map[string]string{plumbline.SubjectLabel: e.Spec.Subject()}
				e.Status.Plan = &v1alpha1.Plan{HeadSHA: sha, Reason: "Selected"}
				e.Status.Runs = []v1alpha1.Run{{Pipeline: "hello", Namespace: tenant, Name: branch + "-run", UID: "1"}}
			})
		}
		w.ends, w.calls = corev1.ConditionTrue, nil
		return w
	}, func(t *testing.T, w *env) {
		if got := w.cancelledOnes(); !slices.Equal(got, []string{"on-main"}) || len(w.git.writes) != 0 ||
			len(w.runs()) != 0 || w.event().Status.Disposition != v1alpha1.DispositionCancels {
			t.Errorf("%v are cancelled, %d reports, %d runs, %+v", got, len(w.git.writes), len(w.runs()), w.event().Status)
		}
	})
}

// And for a re-run request.
func TestRerunSurvivesAnyFailedCall(t *testing.T) {
	t.Parallel()
	atEveryCall(t, func(t *testing.T) *env {
		w := asked(t, "", false)
		w.edit(func(e *v1alpha1.GitEvent) {
			e.Spec.Comment, e.Spec.PullRequest, e.Spec.SHA, e.Spec.EventType = nil, nil, sha, "push"
			e.Spec.Rerun = &v1alpha1.Rerun{All: true, Pulls: []int64{3}}
			e.Labels = map[string]string{plumbline.SubjectLabel: e.Spec.Subject()}
			e.Spec.ReceivedAt = metav1.NewTime(w.clock.Now())
		})
		w.calls = nil
		return w
	}, func(t *testing.T, w *env) { w.wantOneSet(t, false) })
}
