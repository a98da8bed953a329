// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/budget"
)

// S5: a plan of which the open events of its Repository leave no room is not stored; the event waits, says for what, and plans no
// more until there is room. Then it runs.
func TestAPlanWithoutRoomWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, noisy(helloFile("hello")))
	other := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "push-2"}, Spec: w.event().Spec}
	repository := budget.Use{Bytes: 1 << 40, Plan: 1 << 40}
	repository.Repository.Namespace, repository.Repository.Name = other.Spec.Repository.Namespace, other.Spec.Repository.Name
	other.Annotations = repository.Annotations()
	w.must(w.own.Tracker().Add(other))
	_, err := w.reconcile()
	wait := w.event().Status.Waits
	if err == nil || len(wait) != 1 || wait[0].Reason != budget.ReasonRepository || len(w.runs()) != 0 || w.count("create eventpayloads") != 0 {
		t.Fatalf("error %v, waits %+v, %d runs: want that it waits for room", err, wait, len(w.runs()))
	}
	written := w.count("update gitevents/status")
	asked := w.count("patch gitevents") + w.git.heads + w.git.logins + len(w.git.newerFor)
	for range 30 {
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		_, _ = w.reconcile()
	}
	if now := w.count("patch gitevents") + w.git.heads + w.git.logins + len(w.git.newerFor); now != asked || w.event().Status.Plan != nil {
		t.Errorf("%d calls after %d: it plans although there is no room", now, asked)
	}
	if now := w.count("update gitevents/status") - written; now < 3 || now > 6 {
		t.Errorf("the status is written %d times in half an hour, want it seldom, and often enough to tell that it still waits", now)
	}
	w.must(w.own.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), system, other.Name))
	w.kill()
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	w.settle(corev1.ConditionTrue)
	w.wantSuccess()
	if w.count("create eventpayloads") == 0 || w.event().Annotations["plumbline.dev/plan-bytes"] == "" {
		t.Errorf("annotations %v: want that the plan is stored and counted", w.event().Annotations)
	}
}
