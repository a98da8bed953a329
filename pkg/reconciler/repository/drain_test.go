// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	pkgreconciler "knative.dev/pkg/reconciler"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
)

func (w *env) limit(n *int) {
	w.Helper()
	changed := w.repository("one", "app")
	changed.Spec.ConcurrencyLimit = n
	w.must(w.client.Tracker().Update(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), changed, "one"))
}

func (w *env) holders() []string {
	w.Helper()
	s := w.repository("one", "app").Status
	var all []string
	for _, slot := range s.Slots() {
		all = append(all, slot.Run)
	}
	return all
}

// With fifty waiting runs the limit is raised, lowered, removed and set again. The runs get slots
// in order, urgent ones first, and no unfinished run loses its slot.
func TestFiftyWaitingRunsGetSlotsInOrder(t *testing.T) {
	const events = 51
	w := queued(t, 1, events)
	urgent := int32(1)
	w.events[events-1].Status.Plan = &v1alpha1.Plan{Priority: &urgent}
	want := []string{"r50"}
	for i := range events - 1 {
		want = append(want, fmt.Sprint("r", i))
	}
	w.wantQueue(1, events-1, want[0])
	five, two, none := 5, 2, (*int)(nil)
	w.limit(&five)
	w.wantQueue(5, events-5, want[:5]...)
	w.limit(&two)
	w.wantQueue(5, events-5, want[:5]...)
	given := 5
	for over := range 10 {
		number := 0
		_, err := fmt.Sscanf(want[over], "r%d", &number)
		w.must(err)
		w.ran(number, ended)
		if given-over-1 < two {
			given++
		}
		w.wantQueue(given-over-1, events-given, want[over+1:given]...)
	}
	w.limit(none)
	w.reconcile("one/app")
	if got := w.holders(); len(got) > 0 {
		t.Errorf("without a limit %v have slots", got)
	}
	for i := 10; i < 20; i++ { // they are created meanwhile
		w.ran(i, func(run *v1alpha1.Run) { run.UID = "uid" })
	}
	w.limit(&two)
	w.reconcile("one/app")
	running := w.holders()
	for i := 10; i < 20; i++ {
		if !slices.Contains(running, fmt.Sprint("r", i)) {
			t.Errorf("r%d runs and has no slot: %v", i, running)
		}
		w.ran(i, ended)
	}
	if len(running) != 10 {
		t.Errorf("%v have slots", running)
	}
}

// installation returns another installation on the same cluster, which has the same Repositories.
func (w *env) installation(namespace string) *Reconciler {
	w.Helper()
	other := &Reconciler{
		budget: w.budget, client: w.client, namespace: namespace, recorder: w.recorder, clock: w.clock, tekton: w.r.tekton,
		runs: w.r.runs, global: w.r.global,
		repositories: w.r.repositories, claims: cache.NewIndexer(cache.MetaNamespaceKeyFunc, claimIndexers()),
		settings:     w.r.settings,
		eventsSynced: w.r.eventsSynced, retries: backoff.New(), wake: w.r.wake, rivals: w.r.rivals,
	}
	claim := makeClaim(namespace, appURL, repo("one", "app", appURL))
	w.must(w.client.Tracker().Add(claim))
	w.must(other.claims.Add(claim))
	w.must(other.Promote(pkgreconciler.UniversalBucket(), nil))
	return other
}

// Two installations on one cluster give the slots of one limit to their runs, each from its own
// cache. Together they never exceed the limit, and each gets slots.
func TestTwoInstallationsNeverExceedTheLimit(t *testing.T) {
	const events, limit = 12, 2
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(15, seed))
		w := queued(t, limit, 2*events)
		installations := []*Reconciler{w.r, w.installation("other")}
		for i, r := range installations {
			r.openEvents = func(string, string) []*v1alpha1.GitEvent {
				return trimmed(w.events[i*events : (i+1)*events])
			}
		}
		version := 0
		w.client.PrependReactor("update", "repositories", func(action clienttesting.Action) (bool, runtime.Object, error) {
			next := action.(clienttesting.UpdateAction).GetObject().(*pacv1alpha1.Repository).DeepCopy()
			obj, err := w.client.Tracker().Get(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), "one", "app")
			if is := obj.(*pacv1alpha1.Repository); err != nil || is.ResourceVersion != next.ResourceVersion {
				return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "repositories"}, "app",
					errors.New("changed"))
			}
			if n := len(next.Status.Slots()); n > limit {
				t.Errorf("seed %d: %d slots of %d are given", seed, n, limit)
			}
			version++
			next.ResourceVersion = fmt.Sprint("v", version)
			return true, next, w.client.Tracker().Update(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), next,
				"one")
		})
		over := map[string]bool{}
		for step := 0; len(over) < 2*events; step++ {
			if step > 4000 {
				t.Fatalf("seed %d: only %d of %d got a slot: %+v", seed, len(over), 2*events,
					w.repository("one", "app").Status.Queues)
			}
			if random.IntN(3) > 0 {
				w.catchUp()
			}
			w.advance(slotsEvery)
			_ = installations[random.IntN(2)].Reconcile(context.Background(), "one/app")
			w.published()
			if held := w.holders(); len(held) > 0 && random.IntN(2) == 0 {
				name, number := held[random.IntN(len(held))], 0
				_, err := fmt.Sscanf(name, "r%d", &number)
				w.must(err)
				if !over[name] {
					over[name] = true
					w.ran(number, ended)
				}
			}
		}
	}
}
