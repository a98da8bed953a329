// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

func attemptOf(clock *clocktesting.FakeClock, namespace, name string) *attempt.Attempt {
	event := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: name}}
	event.Spec.Repository.Namespace = namespace
	event.Status.Begun = 1
	return &attempt.Attempt{Clock: clock, Event: event}
}

// A tenant whose Git service hangs may have many suspects: after one of them the others let another
// tenant's in.
func TestSuspectsOfOneTenantLetOthersGoFirst(t *testing.T) {
	t.Parallel()
	clock, b := clocktesting.NewFakeClock(time.Now()), &CrashLoopGuard{}
	release := b.Acquire(attemptOf(clock, "hangs", "a"))
	if b.Acquire(attemptOf(clock, "other", "c")) != nil {
		t.Fatal("two suspects are planned at once")
	}
	clock.Step(30 * time.Second)
	release()
	if b.Acquire(attemptOf(clock, "hangs", "b")) != nil {
		t.Error("the tenant's next suspect is let in at once")
	}
	clock.Step(RetryAfter)
	if release = b.Acquire(attemptOf(clock, "other", "c")); release == nil {
		t.Fatal("another tenant's suspect is not let in")
	}
	release()
	clock.Step(30 * time.Second)
	if b.Acquire(attemptOf(clock, "hangs", "b")) == nil {
		t.Error("the tenant's next suspect is never let in")
	}
}

// What a process knows of the beginnings of an event is not true any more when another one has led:
// that may have begun as well, and died.
func TestReturningLeaderForgetsAttempts(t *testing.T) {
	t.Parallel()
	clock, b := clocktesting.NewFakeClock(time.Now()), &CrashLoopGuard{}
	a := attemptOf(clock, "team", "a")
	b.Ended(a, 0)
	a.Event.Status.Begun = 1
	if n := b.Unfinished(a.Event); n != 0 {
		t.Errorf("%d beginnings, want none: the end of this one could not be recorded", n)
	}
	b.Forget()
	if n := b.Unfinished(a.Event); n != 1 {
		t.Errorf("%d beginnings, want that of the other process", n)
	}
}
