// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
)

// S5: a condition says that deliveries are refused, and later that they are recorded again. The
// status is written once each, however many events come and go.
func TestConditionReportsAnExhaustedBudget(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL))
	key := types.NamespacedName{Namespace: "one", Name: "app"}
	condition := func() string {
		t.Helper()
		w.reconcile("one/app")
		c := w.repository("one", "app").Status.GetCondition(pacv1alpha1.RepositoryBudget)
		if c == nil {
			return "none"
		}
		return string(c.Status) + " " + c.Reason
	}
	writes := func() (n int) {
		for _, a := range w.client.Actions() {
			if a.Matches("update", "repositories") && a.(clienttesting.UpdateAction).GetSubresource() == "status" {
				n++
			}
		}
		return n
	}
	step := func(sentence, want string, wantWrites int) {
		t.Helper()
		before := writes()
		if got := condition(); got != want || writes()-before != wantWrites {
			t.Errorf("%s: condition %s and %d writes, want %s and %d", sentence, got, writes()-before, want, wantWrites)
		}
	}
	condition()
	for i := range 3 { // a tenth of 40 is 4
		w.budget.Seen(fmt.Sprint("event-", i), quota.Use{Repository: key, Bytes: 1})
		step("below the budget", "none", 0)
	}
	w.budget.Seen("event-3", quota.Use{Repository: key, Bytes: 1})
	step("at the budget", "False RepositoryBudget", 1)
	message := w.repository("one", "app").Status.GetCondition(pacv1alpha1.RepositoryBudget).Message
	if !strings.Contains(message, "503") ||
		!strings.Contains(message, "Repository one/app have reached their limit of 4 events or 102 MiB") {
		t.Errorf("the condition says %q", message)
	}
	for i := range 20 {
		w.budget.Seen(fmt.Sprint("more-", i), quota.Use{Repository: key, Bytes: 1})
		step("more events", "False RepositoryBudget", 0)
	}
	w.budget.Gone("event-0")
	for i := range 20 {
		w.budget.Gone(fmt.Sprint("more-", i))
	}
	step("three quarters are left", "True Free", 1)
	for i := range 3 {
		w.budget.Gone(fmt.Sprint("event-", i+1))
		step("fewer", "True Free", 0)
	}
	if want := []quota.Scope{{Namespace: "one", Name: "app"}, {Namespace: "one"}, {Namespace: "one"},
		{Namespace: "one", Name: "app"}}; !slices.Equal(w.crossed, want) {
		t.Errorf("crossed %v, want %v", w.crossed, want)
	}
}

// Until the open events are known an existing condition stays.
func TestBudgetConditionWaitsForTheCacheOfEvents(t *testing.T) {
	full := repo("one", "app", appURL)
	full.By(systemNS).MarkFalse(pacv1alpha1.RepositoryBudget, quota.ReasonRepository, "full")
	w := newEnv(t, full)
	w.synced = false
	w.reconcile("one/app")
	if c := w.repository("one", "app").Status.GetCondition(pacv1alpha1.RepositoryBudget); c == nil || !c.IsFalse() {
		t.Errorf("condition %+v, want the one that was there", c)
	}
}

func TestBudgetWakesItsRepositories(t *testing.T) {
	repositories := cache.NewSharedIndexInformer(nil, &pacv1alpha1.Repository{}, 0, cache.Indexers{})
	for _, r := range []*pacv1alpha1.Repository{repo("one", "app", appURL), repo("one", "lib", appURL),
		repo("two", "app", appURL)} {
		if err := repositories.GetStore().Add(r); err != nil {
			t.Fatal(err)
		}
	}
	for scope, want := range map[quota.Scope]string{
		{Namespace: "one", Name: "app"}: "one/app", {Namespace: "one"}: "one/app one/lib", {}: "one/app one/lib two/app",
	} {
		var woken []string
		watches{repositories: repositories}.budgetChanged(func(key types.NamespacedName) {
			woken = append(woken, key.String())
		})(scope)
		slices.Sort(woken)
		if got := strings.Join(woken, " "); got != want {
			t.Errorf("%s wakes %s, want %s", scope, got, want)
		}
	}
}
