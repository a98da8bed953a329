// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// received adds an unsettled event that was recorded so many seconds after the start, to the API
// server and to the cache.
func (w *env) received(seconds int, change func(*v1alpha1.GitEvent)) *v1alpha1.GitEvent {
	w.Helper()
	e := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Namespace: systemNS, Name: fmt.Sprint("event-", seconds)}}
	e.CreationTimestamp = metav1.NewTime(start.Add(time.Duration(seconds) * time.Second))
	e.Spec.Repository = v1alpha1.RepositoryReference{Namespace: "one", Name: "app"}
	e.Spec.Trigger, e.Spec.SHA = v1alpha1.TriggerPush, "abc"
	e.Status.Outcome, e.Status.Ref = "Running", "main"
	e.Status.Plan = &v1alpha1.Plan{HeadSHA: "abc", Reason: "Selected"}
	e.Status.Runs = []v1alpha1.Run{{Name: "build-1", UID: "u"}, {Name: "later-1"}}
	change(e)
	w.must(w.client.Tracker().Add(e))
	w.events = append(w.events, e)
	return e
}

// settled settles an event: it leaves the cache, which wakes the Repository.
func (w *env) settled(e *v1alpha1.GitEvent, outcome, message string) {
	w.Helper()
	before := trimmed([]*v1alpha1.GitEvent{e})[0]
	for i := range w.events {
		if w.events[i] == e {
			w.events = append(w.events[:i:i], w.events[i+1:]...)
			break
		}
	}
	e = e.DeepCopy()
	at := metav1.NewTime(w.clock.Now())
	e.Status.Phase, e.Status.Outcome, e.Status.SettledAt = v1alpha1.PhaseSettled, outcome, &at
	e.Status.Plan.Message = message
	w.must(w.client.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), e, systemNS))
	w.r.recentChanged(before, nil)
}

// recent returns the list, in words.
func (w *env) recent() string {
	var all []string
	for _, e := range w.repository("one", "app").Status.Recent {
		all = append(all, fmt.Sprintf("%s %s %s %s %s %s %v %t",
			e.Event, e.Commit, e.Ref, e.Outcome, e.Reason, e.Message, e.Runs, e.FinishedAt != nil))
	}
	return strings.Join(all, "; ")
}

func (w *env) wantRecent(want string) {
	w.Helper()
	w.reconcile("one/app")
	if got := w.recent(); got != want {
		w.Errorf("status.recent is %q, want %q", got, want)
	}
}

func same(*v1alpha1.GitEvent) {}

// The list has unsettled events, then their results. It survives a restart, and an event that was
// deleted.
func TestRecentFollowsEvents(t *testing.T) {
	w := newEnv(t, repo("one", "app", "https://github.com/acme/app"))
	first := w.received(1, same)
	w.received(2, func(e *v1alpha1.GitEvent) {
		e.Spec.Comment = &v1alpha1.Comment{}
		e.Status.Runs = nil
	})
	w.reconcile("one/app")
	w.wantRecent("event-1 abc main Running Selected  [build-1] false")
	w.settled(first, "Succeeded", "1 of 1")
	second := w.received(3, same)
	w.advance(recentInterval)
	w.wantRecent(
		"event-3 abc main Running Selected  [build-1] false; event-1 abc main Succeeded Selected 1 of 1 [build-1] true",
	)
	w.restart()
	w.must(w.client.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), systemNS, second.Name))
	w.events = nil
	w.advance(recentInterval)
	w.wantRecent(
		"event-3 abc main Running Selected  [build-1] true; event-1 abc main Succeeded Selected 1 of 1 [build-1] true",
	)
	n := len(w.client.Actions())
	w.reconcile("one/app")
	if read := len(w.client.Actions()) - n; read > 2 { // the env's own lists
		t.Errorf("%d calls for a list that is complete", read)
	}
}

// An event that settles before anything is written is in the list, too.
func TestRecentHasShortEvents(t *testing.T) {
	w := newEnv(t, repo("one", "app", "https://github.com/acme/app"))
	w.reconcile("one/app")
	w.settled(
		w.received(1, func(e *v1alpha1.GitEvent) { e.Status.Runs = nil }),
		"Ignored: NoMatch",
		strings.Repeat("x", 300),
	)
	w.wantRecent("event-1 abc main Ignored: NoMatch Selected " + strings.Repeat("x", maxRecentText) + "… [] true")
}

// 100 events in a second, each of which changes three times, are two writes, and the list has ten.
func TestRecentIsWrittenRarely(t *testing.T) {
	w := newEnv(t, repo("one", "app", "https://github.com/acme/app"))
	w.reconcile("one/app")
	w.reconcile("one/app")
	w.writes()
	for i := range 100 {
		e := w.received(i, same)
		w.reconcile("one/app")
		e.Status.Outcome = "Waiting: QuotaExceeded"
		w.reconcile("one/app")
		w.settled(e, "Succeeded", "")
		if after := w.reconcile("one/app"); after <= 0 || after > recentInterval {
			t.Fatalf("the last events are written after %v", after)
		}
		w.advance(10 * time.Millisecond)
	}
	w.advance(recentInterval)
	w.reconcile("one/app")
	if n := len(w.writes()); n != 2 {
		t.Errorf("%d writes", n)
	}
	list := w.repository("one", "app").Status.Recent
	if len(list) != 10 || list[0].Event != "event-99" || list[9].Event != "event-90" || list[9].Outcome != "Succeeded" {
		t.Errorf("the list is %s", w.recent())
	}
}

// A change of an event wakes its Repository once it changes the list, and only then.
func TestRecentWakes(t *testing.T) {
	w := newEnv(t, repo("one", "app", "https://github.com/acme/app"))
	e := w.received(1, same)
	other := e.DeepCopy()
	other.Status.Waits = []v1alpha1.Wait{{Step: v1alpha1.StepReport, Message: "another message"}}
	w.r.recentChanged(e, other)
	if len(w.wakes) != 0 {
		t.Errorf("a message wakes the Repository after %v", w.wakes)
	}
	other.Status.Outcome = "Succeeded"
	w.r.recentChanged(e, other)
	w.r.recentChanged(nil, e)
	if fmt.Sprint(w.wakes) != "[1s 1s]" {
		t.Errorf("the Repository is woken after %v", w.wakes)
	}
}
