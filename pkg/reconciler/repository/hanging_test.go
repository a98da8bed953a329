// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
)

// A team's admission webhook hangs at each status of its Repositories. The team has two workers for
// five minutes, and the other workers serve the other teams.
func TestHangingNamespaceHasTwoWorkers(t *testing.T) {
	w := newEnv(t, repo("slow", "app", "https://git.example/slow/app"),
		repo("fine", "app", "https://git.example/fine/app"))
	hangs, writes := true, map[string]int{}
	w.client.PrependReactor("update", "repositories", func(action clienttesting.Action) (bool, k8sruntime.Object, error) {
		writes[action.GetNamespace()]++
		if !hangs || action.GetNamespace() != "slow" {
			return false, nil, nil
		}
		w.clock.SetTime(w.clock.Now().Add(10 * time.Second))
		return true, nil, apierrors.NewTimeoutError("the webhook does not answer", 0)
	})
	reconcile := func(key string) {
		w.catchUp()
		_ = w.r.Reconcile(t.Context(), key)
	}
	reconcile("slow/app")
	if writes["slow"] != 1 {
		t.Fatalf("%d writes, want one that hangs", writes["slow"])
	}
	began := w.clock.Now()
	team := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "slow", Name: name} }
	for range hangingWorkers {
		if !w.r.hanging.enter(team("other"), began) {
			t.Fatal("it has less than two workers")
		}
	}
	w.clock.SetTime(began.Add(time.Minute))
	w.wakes = nil
	reconcile("slow/app")
	reconcile("slow/app")
	if writes["slow"] != 1 || len(w.wakes) != 2 || w.wakes[0] != hangRetry {
		t.Errorf("a third worker makes %d writes, and is requeued after %v", writes["slow"]-1, w.wakes)
	}
	reconcile("fine/app")
	if writes["fine"] != 1 {
		t.Errorf("another team's status is written %d times, want once", writes["fine"])
	}
	if next, waits := w.r.hanging.leave("slow", began, began); !waits || next != team("app") {
		t.Errorf("the next key is %v, %v", next, waits)
	}
	if w.r.hanging.enter(team("app"), w.clock.Now()); len(w.r.hanging.of["slow"].waiting) != 0 {
		t.Error("it waits twice")
	}
	if w.r.hanging.enter(team("late"), w.clock.Now()) {
		t.Error("there is a third worker")
	}
	w.r.hanging.of["slow"].working-- // without a wake of the next key
	w.wakes = nil
	reconcile("slow/app")
	if writes["slow"] != 2 || !slices.Contains(w.wakes, 0) {
		t.Errorf("%d writes, woken after %v: want that the place that is free is taken, and the next one woken",
			writes["slow"], w.wakes)
	}
	hangs = false
	w.clock.SetTime(w.clock.Now().Add(hangsFor))
	w.r.hanging.leave("slow", w.clock.Now(), w.clock.Now())
	if len(w.r.hanging.of) != 0 {
		t.Errorf("it remembers %v", w.r.hanging.of)
	}
}
