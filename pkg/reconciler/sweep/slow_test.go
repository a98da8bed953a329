// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	kubecorev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// A page of 500 objects may take longer than a reconcile may. Otherwise each reconcile of a backlog
// would end as a failure, and the workqueue would wait longer after each of them.
func TestReconcileEndsInTheMiddleOfAPage(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.fill(1000)
	w.later(5 * 24 * time.Hour)
	w.perCall = 100 * time.Millisecond
	for len(w.events) > 0 {
		began, left := w.clock.Now(), len(w.events)
		_ = w.sweep.Reconcile(t.Context(), system+"/"+key) // the timer of the next workFor
		if took := w.clock.Since(began); took > 2*workFor {
			t.Fatalf("a workFor of %v took %v, a reconcile has %v", workFor, took, deadline)
		}
		if len(w.events) == left {
			t.Fatal("a workFor did nothing")
		}
	}
}

// An object that uses the time of a whole reconcile is one bad object, too.
func TestObjectThatHangsStopsNothingElse(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(w *env) (call, object string){
		"an event": func(w *env) (string, string) { return "delete gitevents", w.settled("x").Name },
		"a payload": func(w *env) (string, string) {
			w.payload("a", "push-1")
			return "delete eventpayloads", "a"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t)
			call, object := prepare(w)
			w.fill(10)
			w.payload("z", "push-2")
			w.later(5 * 24 * time.Hour)
			for range 100 {
				ctx, cancel := context.WithCancel(t.Context())
				w.on(call, object, func() error { cancel(); return ctx.Err() })
				_ = w.sweep.Reconcile(ctx, system+"/"+key) // the timer of the next workFor
				cancel()
				if w.sweep.at == (position{}) {
					break
				}
			}
			if len(w.events)+len(w.payloads) != 1 {
				t.Errorf("%d events and %d payloads are left, want only the one that hangs; the pass is at %+v", len(w.events),
					len(w.payloads), w.sweep.at)
			}
		})
	}
}

// hung is a namespace whose Secrets cannot be deleted: an admission webhook of the team does not
// respond.
type hung struct {
	corev1.SecretInterface
	over func() // ends the reconcile's time
}

func (h hung) Secrets(string) corev1.SecretInterface { return h }

func (h hung) Delete(ctx context.Context, _ string, _ metav1.DeleteOptions) error {
	if end, bounded := ctx.Deadline(); !bounded || time.Until(end) > deadline*3/4 {
		h.over()
		return ctx.Err()
	}
	return context.DeadlineExceeded
}

// A hanging webhook of a team delays the deletion of an event by at most a day.
func TestMarkEndsAfterADayOfHangingDeletes(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	event := w.settled("taken over")
	event.Status.LateSecrets = true
	w.later(lateLimit)
	for range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		w.sweep.secrets = hung{over: cancel}
		w.answer = func(string, string) error { return ctx.Err() }
		_ = w.sweep.Reconcile(ctx, system+"/"+key) // the timer of the next workFor
		cancel()
	}
	if w.events[event.Name].Status.LateSecrets {
		t.Error("the event is still marked")
	}
}

// hanging has the namespace "hangs", whose webhook does not respond, among others.
type hanging struct {
	corev1.SecretsGetter
	w *env
}

func (h hanging) Secrets(namespace string) corev1.SecretInterface {
	if namespace != "hangs" {
		return h.SecretsGetter.Secrets(namespace)
	}
	return hangs{w: h.w}
}

type hangs struct {
	corev1.SecretInterface
	w *env
}

func (h hangs) Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions,
	...string) (*kubecorev1.Secret, error) {
	h.w.later(10 * time.Second)
	return nil, apierrors.NewInternalError(errors.New("failed calling webhook: context deadline exceeded"))
}

// A team's webhook that hangs at each Secret costs a pass one event of the team, however many there
// are.
func TestHangingNamespaceIsLeftToTheNextPass(t *testing.T) {
	t.Parallel()
	for _, since := range []time.Duration{time.Hour, lateLimit + time.Hour} {
		t.Run(since.String(), func(t *testing.T) {
			t.Parallel()
			isLeftToTheNextPass(t, since)
		})
	}
}

func isLeftToTheNextPass(t *testing.T, since time.Duration) {
	w := newEnv(t)
	old := w.settled("old")
	w.later(5 * 24 * time.Hour)
	for n := range 50 {
		event := w.settled(fmt.Sprint("taken over ", n))
		event.Spec.Repository.Namespace, event.Status.LateSecrets = "hangs", true
		event.Status.Runs = []v1alpha1.Run{{Namespace: "hangs", Name: fmt.Sprint("run-", n), UID: "uid"}}
	}
	w.sweep.secrets = hanging{w.sweep.secrets, w}
	w.later(since)
	began := w.clock.Now()
	w.pass()
	if took := w.clock.Since(began); took > time.Minute {
		t.Errorf("the pass took %v", took)
	}
	if w.events[old.Name] != nil {
		t.Error("nothing else was swept")
	}
}

// A list that is forbidden, or always fails, is logged and counted. The other kinds are swept.
func TestFailingListStopsNoOtherPhase(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{
		"it is forbidden":                    apierrors.NewForbidden(v1alpha1.Resource("gitevents"), "", nil),
		"the API server takes too long":      context.DeadlineExceeded,
		"the API server cannot read an item": apierrors.NewInternalError(errors.New("unable to decode")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t)
			w.payload("z", "push-2")
			w.later(5 * 24 * time.Hour)
			w.answer = func(call, _ string) error {
				if call == "list gitevents" {
					return answer
				}
				return nil
			}
			for range 100 {
				_ = w.sweep.Reconcile(t.Context(), system+"/"+key) // the timer of the next workFor
			}
			if len(w.payloads) != 0 || !w.sweep.metrics.at.IsZero() {
				t.Errorf("%d payloads are left, the pass counts as whole: %v", len(w.payloads), !w.sweep.metrics.at.IsZero())
			}
		})
	}
}

func TestListThatAlwaysExpiresEnds(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.fill(1001)
	w.payload("z", "push-2")
	w.later(time.Hour)
	w.perCall = time.Second
	w.answer = func(call, token string) error {
		if call == "list gitevents" && token != "" {
			return apierrors.NewResourceExpired("too old")
		}
		return nil
	}
	for range 200 {
		_ = w.sweep.Reconcile(t.Context(), system+"/"+key) // the timer of the next workFor
	}
	if len(w.payloads) != 0 {
		t.Errorf("%d payloads are left", len(w.payloads))
	}
}

// The workqueue waits longer after each failure of a key, until a reconcile needs no other one,
// which never happens here. After eighteen failures in a month each failure would cost 15 minutes.
func TestOldFailuresDoNotDelayTheNextRetry(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	fails := false
	w.answer = func(call, _ string) error {
		if fails = call == "list eventpayloads" && !fails; fails {
			return apierrors.NewServiceUnavailable("etcd")
		}
		return nil
	}
	for range 20 {
		if w.pass(); w.failed != 0 {
			t.Fatalf("%d failures are remembered after a pass", w.failed)
		}
	}
}

func notFound(resource, name string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 404,
		Reason:  metav1.StatusReasonNotFound,
		Details: &metav1.StatusDetails{Group: plumbline.GroupName, Kind: resource, Name: name}, Message: name + " not found"}}
}
