// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/reconciler"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/fairqueue"
)

// add creates another event like the first, from another host.
func (w *env) add(name, host string) {
	w.t.Helper()
	e := event()
	e.Name, e.UID, e.Spec.DeliveryKey, e.Spec.Host = name, types.UID("uid-of-"+name), name, host
	w.must(w.own.Tracker().Add(e))
}

// A failed login takes one slot of its Git host for the time of its reconcile, however many steps
// need the service, and leaves every slot free afterwards.
func TestFailedLoginReleasesItsSlot(t *testing.T) {
	t.Parallel()
	removed := func(w *env) {
		w.must(w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), system, "app"))
	}
	failures := map[string]func(*env){
		"the Secret is missing": removed,
		"the API server cannot read it": func(w *env) {
			w.hook = always("get secrets", apierrors.NewServiceUnavailable("KMS is down"))
		},
		"the service refuses the token": func(w *env) {
			w.git.loginErr = fault.Operatorf(fault.ReasonCredentialsRefused, "refused")
		},
		"the service cannot be logged in to": func(w *env) {
			w.git.loginErr = fault.Transientf(fault.ReasonGitUnreachable, "no answer")
		},
	}
	for name, fail := range failures {
		for _, limit := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s/%d slots", name, limit), func(t *testing.T) {
				t.Parallel()
				w := newEnv(t, helloFile("a"), helloFile("b"))
				events := map[string]string{"push-1": "git.example", "push-2": "git.example", "push-3": "other.example"}
				w.add("push-2", "git.example")
				w.add("push-3", "other.example")
				w.process().share(fairqueue.New(fairqueue.Options{
					Workers: 8 * limit, Now: w.clock.Now, Full: func(string) {}, Wake: func(string, time.Duration) {},
				}))
				w.hook = always("create pipelineruns", errRefused) // planned, and each later step needs the service
				for event := range events {
					_, _ = w.reconcileEvent(event)
				}
				fail(w)
				for range 10 {
					for event, host := range events {
						w.git.logins, w.git.atLogin = 0, func() {
							if taken := w.alive.queue.InUse(); len(taken) != 5 || taken["host "+host] != 1 {
								t.Errorf("while %s logs in the slots taken are %v, want one of %s", event, taken, host)
							}
						}
						_, _ = w.reconcileEvent(event)
						if w.git.logins > 1 {
							t.Errorf("%s logged in %d times in one reconcile", event, w.git.logins)
						}
					}
					w.advance(fault.OperatorRetry)
				}
				w.hook, w.git.loginErr, w.git.atLogin = nil, nil, nil
				w.storeApp(func(*corev1.Secret) {})
				for range 10 {
					for event := range events {
						_, _ = w.reconcileEvent(event)
					}
					w.finishRuns(corev1.ConditionTrue)
					w.advance(fault.OperatorRetry)
				}
				for _, e := range w.events() {
					if !e.Settled() {
						t.Errorf("%s is not settled: %+v", e.Name, e.Status.Waits)
					}
				}
			})
		}
	}
}

// An unplanned event has a slot of its own Git host before it is read. A planned one takes it when
// it needs it.
func TestEventWaitsForASlotOfItsHost(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("a"))
	w.add("push-2", "other.example")
	busy, _ := w.process().queue.AcquireService(fairqueue.Request{Event: "hangs", Namespace: "other", Host: "git.example"})
	defer busy()
	for range 3 { // of four workers one visits a host
		if _, err := w.reconcile(); err == nil || w.event().Status.Plan != nil {
			t.Fatalf("an event without a turn: error %v, plan %v", err, w.event().Status.Plan)
		}
	}
	if got := w.count("get gitevents"); got != 0 {
		t.Errorf("it was read %d times while it waited", got)
	}
	if _, _ = w.reconcileEvent("push-2"); w.eventNamed("push-2").Status.Plan == nil {
		t.Error("an event of another host waits with it")
	}
}

// An event that is deleted, or led by another process, when its turn comes releases the slot at
// once.
func TestDeletedEventReleasesItsSlot(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(w *env){
		"it is gone": func(w *env) {
			w.must(w.own.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), system, "push-1"))
		},
		"another process leads it": func(w *env) { w.alive.Demote(reconciler.UniversalBucket()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, helloFile("a"))
			end, _ := w.process().queue.AcquireService(fairqueue.Request{Event: "hangs", Namespace: "other",
				Host: "git.example"})
			_, _ = w.reconcile()
			end()
			if len(w.alive.queue.InUse()) == 0 {
				t.Fatal("no turn is kept for the event that waited")
			}
			leave(w)
			if _, _ = w.reconcile(); len(w.alive.queue.InUse()) != 0 {
				t.Errorf("its turn is kept: %v", w.alive.queue.InUse())
			}
		})
	}
}
