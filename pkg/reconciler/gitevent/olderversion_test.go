// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// labelledBefore sets the label that an older version wrote, which has the UID of the Repository.
func labelledBefore(e *v1alpha1.GitEvent) {
	_, label, _ := strings.Cut(e.Spec.Subjects(), ",")
	e.Labels = map[string]string{plumbline.SubjectLabel: label}
}

// A re-run request names a commit; an older version has recorded its events under a pull request.
func TestRerunFindsRecordsOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	for name, label := range map[string]func(*v1alpha1.GitEvent){"this version": labelled,
		"the version before": labelledBefore} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := retested(t, "/retest", true, true)
			w.must(w.own.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), system, earlier))
			first := w.eventNamed("first")
			label(first)
			first.Status.Runs[0].Result = nil // it goes on: a second run would be one too many
			first.Status.Phase = ""
			w.replaceEvent(first)
			_, _ = w.reconcile()
			_, _ = w.reconcile()
			if e := w.event(); len(w.runs()) != 0 || !strings.Contains(e.Status.Plan.Decisions[0].Reason, "first-run") {
				t.Errorf("%d runs: %+v", len(w.runs()), e.Status.Plan)
			}
		})
	}
}

// A push and its pull request's event find each other, whichever version has recorded them.
func TestPushAndPullRequestOfAnOlderVersionRunOnce(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{"the push is planned first": "push-1",
		"the pull request is planned first": "pull-3"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPair(t)
			w.edit(func(e *v1alpha1.GitEvent) { labelledBefore(e) })
			w.synchronized(0, func(e *v1alpha1.GitEvent) {
				labelledBefore(e)
				e.Spec.ReceivedAt = metav1.NewTime(w.clock.Now())
			})
			_, _ = w.reconcileEvent(first)
			_, _ = w.reconcileEvent("pull-3")
			w.settle(corev1.ConditionTrue) // some minutes pass with each reconcile
			if e := w.event(); len(w.runs()) != 1 || e.Status.Disposition != v1alpha1.DispositionIgnored {
				t.Errorf("%d runs, the push %+v", len(w.runs()), e.Status)
			}
		})
	}
}
