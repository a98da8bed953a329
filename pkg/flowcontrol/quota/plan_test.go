// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A plan is admitted until a budget of bytes is exhausted. Then it waits until another event has
// finished.
func TestPlanWaitsForABudget(t *testing.T) {
	w := newEnv(t)
	limit := w.Limits(Scope{Namespace: "one", Name: "a"}).Bytes
	a, other := of("one", "a"), of("two", "a")
	plan := func(event string, bytes int64) bool {
		_, ok := w.Plan(event, Use{Repository: a, Bytes: bytes + 1, Plan: bytes})
		return ok
	}
	for _, event := range []string{"first", "second", "third"} {
		w.Seen(event, Use{Repository: a, Bytes: 1})
	}
	w.Seen("of another", Use{Repository: other, Bytes: 1})
	if !plan("first", 10*limit) {
		t.Error("a plan that is larger than the budget has to wait although no other event has one")
	}
	if plan("second", 1) {
		t.Error("a plan is let in past the budget")
	}
	if used := w.used[Scope{Namespace: "one", Name: "a"}].Bytes; used != 10*limit+3 {
		t.Errorf("%d bytes are used after a refusal", used)
	}
	if !plan("first", 10*limit) {
		t.Error("an event waits for itself")
	}
	w.Gone("first")
	if !plan("second", limit) || plan("third", 1) {
		t.Error("want the second let in when the first has ended, and the third not")
	}
	w.Unplanned("second", Use{Repository: a, Bytes: 1})
	if !plan("third", 1) {
		t.Error("what was not recorded is counted")
	}
	if _, ok := w.Plan("of another", Use{Repository: other, Bytes: 9, Plan: 8}); !ok {
		t.Error("another tenant waits")
	}
	for _, event := range []string{"second", "third", "of another"} {
		w.Gone(event)
	}
	w.Unplanned("third", Use{Repository: a, Bytes: 1})
	if _, ok := w.Plan("third", Use{Repository: a, Bytes: limit, Plan: limit}); !ok {
		t.Error("an event that has ended is refused")
	}
	if len(w.used)+len(w.entries)+len(w.plans) != 0 {
		t.Errorf("something is left: %v %v %v", w.used, w.entries, w.plans)
	}
}

// The payloads alone may exhaust a budget, e.g. when it was lowered. Then plans are admitted one
// after the other.
func TestPlansDoNotWaitForEachOther(t *testing.T) {
	w := newEnv(t)
	a := of("one", "a")
	for _, event := range []string{"x", "y"} {
		w.Seen(event, Use{Repository: a, Bytes: w.Limits(Scope{}).Bytes})
	}
	if _, ok := w.Plan("x", Use{Repository: a, Bytes: 1 << 40, Plan: 1}); !ok {
		t.Error("no plan is let in")
	}
	if scope, ok := w.Plan("y", Use{Repository: a, Bytes: 1 << 40, Plan: 1}); ok ||
		scope != (Scope{Namespace: "one", Name: "a"}) {
		t.Errorf("%v, want the second to wait", scope)
	}
}

// The budgets of the namespace and of the whole installation limit a plan, too.
func TestPlanWaitsForWiderBudgets(t *testing.T) {
	for want, holder := range map[Scope]string{{Namespace: "one"}: "one", {}: "two"} {
		w := newEnv(t)
		w.Seen("holder", Use{Repository: of(holder, "b"), Bytes: 1 << 40, Plan: 1 << 39})
		w.Seen("e", Use{Repository: of("one", "a"), Bytes: 1})
		if scope, ok := w.Plan("e", Use{Repository: of("one", "a"), Bytes: 9, Plan: 8}); ok || scope != want {
			t.Errorf("%v %t, want %v", scope, ok, want)
		}
	}
}

func TestUseRoundTrip(t *testing.T) {
	for _, use := range []Use{{Repository: of("one", "a"), Bytes: 5}, {Repository: of("one", "a"), Bytes: 50, Plan: 45}} {
		if got := Read(&metav1.ObjectMeta{Annotations: use.Annotations()}); got != use {
			t.Errorf("%+v, want %+v", got, use)
		}
	}
	wrong := Use{Repository: of("one", "a"), Bytes: 5, Plan: 6}
	if got := Read(&metav1.ObjectMeta{Annotations: wrong.Annotations()}); got.Plan != 0 || got.Bytes != 5 {
		t.Errorf("a plan of more bytes than all is read as %+v", got)
	}
}
