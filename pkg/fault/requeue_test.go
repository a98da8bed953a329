// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"knative.dev/pkg/controller"
)

func TestRequeue(t *testing.T) {
	transient, conflict := Transientf("A", "down"), New(Conflict, "Conflict", apierrors.NewConflict(metav1Resource(), "x", errors.New("modified")))
	operator, invalid, ignored := Operatorf("B", "fix it"), Invalidf("C", "bad"), Ignoredf("D", "not ours")
	soon, late := Throttledf("E", 2*time.Second, "wait"), Throttledf("E", time.Hour, "wait long")
	cases := []struct {
		name  string
		errs  []error
		text  string
		after time.Duration
	}{
		{name: "nothing for nil", errs: []error{nil, nil}},
		{name: "nothing for what is settled", errs: []error{invalid, ignored, nil}},
		{name: "the fault itself when it is the only one", errs: []error{nil, transient, invalid}, text: "down"},
		{name: "an error without a class is retried", errs: []error{errors.New("boom")}, text: "boom"},
		{name: "a Transient wins over every timer", errs: []error{soon, operator, transient}, text: "down"},
		{name: "a Conflict wins over every timer", errs: []error{soon, conflict}, text: conflict.Error()},
		{name: "the earliest timer wins", errs: []error{late, operator, soon}, after: 2 * time.Second},
		{name: "an Operator fault waits five minutes", errs: []error{late, operator}, after: OperatorRetry},
		{name: "a Throttled fault without a known wait is retried with backoff", errs: []error{Throttledf("E", 0, "soon"), late}, text: "soon"},
		{name: "all failures are joined, equal texts once", errs: []error{errors.New("z"), transient, errors.New("z")}, text: "down; z"},
		{name: "the text does not depend on the order", errs: []error{errors.New("z"), errors.New("z"), transient}, text: "down; z"},
		{name: "conflicts come last", errs: []error{conflict, transient}, text: "down; " + conflict.Error()},
		{name: "a joined error counts with each of its parts", errs: []error{fmt.Errorf("creating: %w", errors.Join(invalid, transient))}, text: "creating: bad\ndown"},
		{name: "a joined error of timers is a timer", errs: []error{errors.Join(invalid, late, soon)}, after: 2 * time.Second},
		{name: "and the earliest of them", errs: []error{errors.Join(soon, late)}, after: 2 * time.Second},
		{name: "a wrapped fault keeps its class and its words", errs: []error{fmt.Errorf("reading: %w", transient)}, text: "reading: down"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := Requeue(c.errs...)
			requeue, after := controller.IsRequeueKey(got)
			if requeue != (c.after > 0) || after != c.after {
				t.Fatalf("Requeue = %v, want a timer of %v", got, c.after)
			}
			if c.after == 0 && fmt.Sprint(got) != orNil(c.text) {
				t.Errorf("Requeue = %q, want %q", fmt.Sprint(got), orNil(c.text))
			}
		})
	}
}

func orNil(text string) string {
	if text == "" {
		return "<nil>"
	}
	return text
}

func TestRequeueDoesNotHideAFailureBehindAConflict(t *testing.T) {
	conflict := New(Conflict, "Conflict", apierrors.NewConflict(metav1Resource(), "x", errors.New("modified")))
	if !apierrors.IsConflict(Requeue(conflict)) {
		t.Error("a conflict alone is not seen as one: knative would log it as an error")
	}
	if apierrors.IsConflict(Requeue(conflict, Transientf("A", "down"))) {
		t.Error("knative would keep the other failure out of the error log")
	}
}
