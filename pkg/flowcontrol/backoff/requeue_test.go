// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"knative.dev/pkg/controller"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

func TestRequeue(t *testing.T) {
	transient, conflict := fault.Transientf("A", "down"), modified()
	operator, invalid, ignored := fault.Operatorf("B", "fix it"), fault.Invalidf("C", "bad"),
		fault.Ignoredf("D", "not ours")
	soon, late := fault.Throttledf("E", 2*time.Second, "wait"), fault.Throttledf("E", time.Hour, "wait long")
	cases := []struct {
		name  string
		errs  []error
		text  string
		after time.Duration
	}{
		{name: "nothing for nil", errs: []error{nil, nil}},
		{name: "a refusal that nobody turned into an answer is retried, and shows", errs: []error{invalid, nil}, text: "bad"},
		{name: "and so is an end that nobody turned into one", errs: []error{ignored, nil}, text: "not ours"},
		{name: "the fault itself when it is the only one", errs: []error{nil, transient, nil}, text: "down"},
		{name: "an error without a class is retried", errs: []error{errors.New("boom")}, text: "boom"},
		{name: "a Transient is returned, and the earliest timer is known beside it",
			errs: []error{late, soon, operator, transient}, text: "down", after: 2 * time.Second},
		{name: "and so is a Conflict", errs: []error{soon, conflict}, text: conflict.Error(), after: 2 * time.Second},
		{name: "an Operator fault beside a Transient waits five minutes", errs: []error{operator, transient}, text: "down",
			after: fault.OperatorRetry},
		{name: "a timer inside a joined error is known beside the others", errs: []error{errors.Join(transient, soon)},
			text: "down\nwait", after: 2 * time.Second},
		{name: "the earliest timer wins", errs: []error{late, operator, soon}, after: 2 * time.Second},
		{name: "an Operator fault waits five minutes", errs: []error{late, operator}, after: fault.OperatorRetry},
		{name: "a Throttled fault without a known wait is retried with backoff",
			errs: []error{fault.Throttledf("E", 0, "soon"), late}, text: "soon", after: time.Hour},
		{name: "all failures are joined, equal texts once", errs: []error{errors.New("z"), transient, errors.New("z")},
			text: "down; z"},
		{name: "the text does not depend on the order", errs: []error{errors.New("z"), errors.New("z"), transient},
			text: "down; z"},
		{name: "conflicts come last", errs: []error{conflict, transient}, text: "down; " + conflict.Error()},
		{name: "a joined error counts with each of its parts", errs: []error{fmt.Errorf("creating: %w",
			errors.Join(soon, transient))}, text: "creating: wait\ndown", after: 2 * time.Second},
		{name: "of several waits one has the word and each counts", errs: []error{
			fmt.Errorf("planning: %w", fault.Among(transient, late, soon)),
		}, text: "planning: down", after: 2 * time.Second},
		{name: "a joined error of timers is a timer", errs: []error{errors.Join(late, soon)}, after: 2 * time.Second},
		{name: "and the earliest of them", errs: []error{errors.Join(soon, late)}, after: 2 * time.Second},
		{name: "a wrapped fault keeps its class and its words", errs: []error{fmt.Errorf("reading: %w", transient)},
			text: "reading: down"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := Requeue(c.errs...)
			if after, known := KnownWait(got); known != (c.after > 0) || after != c.after {
				t.Fatalf("Requeue = %v, known after %v, want %v", got, after, c.after)
			}
			if timer, _ := controller.IsRequeueKey(got); timer != (c.text == "" && c.after > 0) ||
				Retried(got) != (c.text != "") {
				t.Errorf("a timer alone: %v, retried: %v", timer, Retried(got))
			}
			if (c.after == 0 || c.text != "") && fmt.Sprint(got) != orNil(c.text) {
				t.Errorf("Requeue = %q, want %q", fmt.Sprint(got), orNil(c.text))
			}
		})
	}
}

// modified is a write conflict.
func modified() error {
	runs := schema.GroupResource{Group: "tekton.dev", Resource: "pipelineruns"}
	return fault.New(fault.Conflict, "Conflict", apierrors.NewConflict(runs, "x", errors.New("modified")))
}

func orNil(text string) string {
	if text == "" {
		return "<nil>"
	}
	return text
}

func TestRequeueDoesNotHideAFailureBehindAConflict(t *testing.T) {
	conflict := modified()
	if !apierrors.IsConflict(Requeue(conflict)) {
		t.Error("a conflict alone is not seen as one: knative would log it as an error")
	}
	if apierrors.IsConflict(Requeue(conflict, fault.Transientf("A", "down"))) {
		t.Error("knative would keep the other failure out of the error log")
	}
}
