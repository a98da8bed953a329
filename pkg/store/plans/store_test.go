// SPDX-License-Identifier: Apache-2.0

package plans_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

func TestPayloadIsReadFromTheEvent(t *testing.T) {
	t.Parallel()
	event := pushed(`{"a":"b"}`)
	w := newFixture(t, event)
	plan := w.store.Of(cached(event))
	if body, err := plan.Payload(t.Context()); err != nil || string(body) != `{"a":"b"}` {
		t.Errorf("%s, %v", body, err)
	}
}

// A payload that was removed is missing permanently. No other failure means that.
func TestUnreadablePayload(t *testing.T) {
	t.Parallel()
	removed := pushed("x")
	removed.Payload = nil
	w := newFixture(t, removed)
	if _, err := w.store.Of(removed).Payload(t.Context()); fault.Of(err) == nil ||
		fault.Of(err).Reason != plans.ReasonPayloadMissing {
		t.Errorf("%v, want %s", err, plans.ReasonPayloadMissing)
	}
	w.fail("get", "gitevents", apierrors.NewInternalError(errors.New("etcd")))
	if _, err := w.store.Of(removed).Payload(t.Context()); !fault.Is(err, fault.Transient) {
		t.Errorf("%v, want it to come back", err)
	}
}

// Few manifests are in the plan, and cost no call; when there are too many for it, the later ones
// are in EventPayloads.
func TestWhereManifestsAreStored(t *testing.T) {
	t.Parallel()
	event := pushed("x")
	w := newFixture(t, event)
	next := &v1alpha1.Plan{}
	for i, step := range []struct {
		noise  int
		blobs  int
		writes bool
	}{{100, 0, false}, {100, 0, false}, {v1alpha1.MaxManifestBytes, 1, true}, {100, 1, false}} {
		e := cached(w.live())
		e.Status.Plan = next
		err := w.store.Of(e).Save(t.Context(), next, []plans.Manifest{manifest(fmt.Sprint("run-", i), step.noise)}, nil)
		if err != nil || len(next.Blobs) != step.blobs || len(next.Manifests) >= v1alpha1.MaxManifestBytes {
			t.Fatalf("%d: %v, %d bytes and %d blobs", i, err, len(next.Manifests), len(next.Blobs))
		}
		if calls := w.calls(); (len(calls) > 0) != step.writes {
			t.Errorf("%d: calls %v", i, calls)
		}
	}
	if got := plans.Bytes(next); got < 5*v1alpha1.MaxManifestBytes/4 || got > 2*v1alpha1.MaxManifestBytes {
		t.Errorf("%d bytes of manifests, want those of all", got)
	}
	e := cached(w.live())
	e.Status.Plan = next
	for _, name := range []string{"run-3", "run-0", "run-2", "run-1"} { // each of a process that knows nothing
		if run, err := w.store.Of(e).Manifest(t.Context(), name); err != nil || run.Name != name {
			t.Errorf("%s: %+v, %v", name, run, err)
		}
	}
	if _, err := w.store.Of(e).Manifest(t.Context(), "other"); err == nil {
		t.Error("a run that nobody planned is known")
	}
	e.Status.Plan.Manifests = e.Status.Plan.Manifests[:20]
	if _, err := w.store.Of(e).Manifest(t.Context(), "run-0"); fault.Of(err) == nil ||
		fault.Of(err).Reason != "CorruptPayload" {
		t.Errorf("%v, want that the plan cannot be read", err)
	}
}

// A plan that compresses well is not in the status if it is large uncompressed, because it is read
// whole for each run.
func TestLargePlanIsNotInTheStatus(t *testing.T) {
	t.Parallel()
	event := pushed("x")
	w := newFixture(t, event)
	next, e := &v1alpha1.Plan{}, cached(event)
	huge := plans.Manifest{
		Name: "run", JSON: []byte(`{"metadata":{"name":"run","annotations":{"x":"` + strings.Repeat("x", 2<<20) + `"}}}`),
	}
	if err := w.store.Of(e).Save(t.Context(), next, []plans.Manifest{huge}, nil); err != nil || next.Manifests != nil ||
		len(next.Blobs) != 1 {
		t.Errorf("%v, %d bytes and %d blobs", err, len(next.Manifests), len(next.Blobs))
	}
}

// S5: a plan is counted before it is written, and once however often it is written. The bytes that
// it takes are counted.
func TestPlanIsCountedBeforeItIsStored(t *testing.T) {
	t.Parallel()
	event := pushed("x")
	w := newFixture(t, event)
	large := []plans.Manifest{manifest("run", 700_000)}
	w.fail("create", "eventpayloads", apierrors.NewServiceUnavailable("shutting down"))
	e := cached(event)
	if err := w.store.Of(e).Save(t.Context(), &v1alpha1.Plan{}, large, nil); err == nil {
		t.Fatal("nothing is stored and nobody is told")
	}
	if calls := w.calls(); calls[0] != "patch gitevents" || slices.Contains(calls[1:], "patch gitevents") {
		t.Errorf("calls %v, want that it is counted first", calls)
	}
	counted := quota.Read(w.live())
	w.client.ReactionChain = w.client.ReactionChain[1:]
	for range 2 { // the process was killed, and another one plans the same
		if err := w.store.Of(cached(w.live())).Save(t.Context(), &v1alpha1.Plan{}, large, nil); err != nil {
			t.Fatal(err)
		}
	}
	stored := int64(0)
	for _, action := range w.client.Actions() {
		if create, ok := action.(clienttesting.CreateAction); ok {
			stored += blob.StoredBytes([]*v1alpha1.EventPayload{create.GetObject().(*v1alpha1.EventPayload)})
		}
	}
	if now := quota.Read(w.live()); now != counted || now.Plan != stored || now.Bytes != stored+100 || stored < 700_000 {
		t.Errorf("counted %+v and then %+v, want the %d that are stored", counted, now, stored)
	}
	if err := w.store.Of(cached(w.live())).Save(t.Context(), &v1alpha1.Plan{},
		[]plans.Manifest{manifest("another", 700_000)}, nil); err != nil {
		t.Fatal(err)
	}
	if now := quota.Read(w.live()); now.Plan < 2*stored-1000 {
		t.Errorf("another plan was stored beside the first one, and %+v is counted", now)
	}
}

// S5: a plan that exceeds its budget waits, and nothing of it is written.
func TestPlanOverBudgetWaits(t *testing.T) {
	t.Parallel()
	event := pushed("x")
	w := newFixture(t, event)
	w.limits.Bytes = 10 << 20
	w.used.Seen("other", quota.Use{Repository: quota.Read(event).Repository, Bytes: 5 << 20, Plan: 4 << 20})
	e := cached(event)
	plan := w.store.Of(e)
	err := plan.Save(t.Context(), &v1alpha1.Plan{}, []plans.Manifest{manifest("run", 700_000)}, nil)
	if f := fault.Of(err); f == nil || f.Class != fault.Throttled || !plans.OverBudget(f.Reason) || f.RetryAfter == 0 ||
		f.Message != "the payloads and plans of the unsettled events of Repository team/app have reached their limit of 1 MiB: this event is planned when others have settled" {
		t.Errorf("%v, want that it waits", err)
	}
	if calls := w.calls(); len(calls) != 0 {
		t.Errorf("calls %v", calls)
	}
	if !plans.OverBudget(fault.Of(plan.WithinBudget()).Reason) {
		t.Error("there is room")
	}
	if err := plan.Save(t.Context(), &v1alpha1.Plan{}, []plans.Manifest{manifest("run", 100)}, nil); err != nil {
		t.Errorf("a plan that the status holds needs room: %v", err)
	}
	w.used.Gone("other")
	if err := plan.WithinBudget(); err != nil {
		t.Errorf("there is no room: %v", err)
	}
	values := map[string]string{"marker": strings.Repeat("x", v1alpha1.MaxManifestBytes)}
	if err := plan.Save(t.Context(), &v1alpha1.Plan{}, []plans.Manifest{manifest("run", 100)}, values); err != nil ||
		w.live().Annotations[plumbline.PlanBytesAnnotation] == "" {
		t.Errorf("%v, and the secret values are not counted", err)
	}
}

// A count that could not be stored is undone, and a concurrent change is not overwritten.
func TestFailedCountIsUndone(t *testing.T) {
	t.Parallel()
	event := pushed("x")
	w := newFixture(t, event)
	w.limits.Bytes = 10 << 20
	w.fail("patch", "gitevents", apierrors.NewConflict(v1alpha1.Resource("gitevents"), "push-1", errors.New("modified")))
	if err := w.store.Of(cached(event)).Save(t.Context(), &v1alpha1.Plan{}, []plans.Manifest{manifest("run", 3<<20)},
		nil); !fault.Is(err, fault.Conflict) {
		t.Errorf("%v, want the conflict", err)
	}
	patch := w.client.Actions()[0].(clienttesting.PatchAction).GetPatch()
	if !strings.Contains(string(patch), `"resourceVersion":"7"`) {
		t.Errorf("the patch is of any version: %s", patch)
	}
	w.used.Seen("other", quota.Use{Repository: quota.Read(event).Repository, Bytes: 1})
	if _, ok := w.used.Plan("other", quota.Use{Repository: quota.Read(event).Repository, Bytes: 9, Plan: 8}); !ok {
		t.Error("what was not recorded is counted")
	}
}

// Before an event settles, its payload and its plan are removed: from the event with one patch, and
// from EventPayloads. Both may be repeated.
func TestRemove(t *testing.T) {
	t.Parallel()
	event := pushed("x")
	event.Status.Plan = &v1alpha1.Plan{}
	w := newFixture(t, event)
	if err := w.store.Of(event).Save(t.Context(), event.Status.Plan, []plans.Manifest{manifest("run", 300_000)},
		nil); err != nil {
		t.Fatal(err)
	}
	w.calls()
	for range 2 {
		e := cached(w.live())
		e.Status.Plan = event.Status.Plan
		if err := w.store.Of(e).Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := []string{"patch gitevents", "delete eventpayloads", "delete eventpayloads"}; !slices.Equal(w.calls(),
			want) {
			t.Errorf("want the calls %v", want)
		}
	}
	if live := w.live(); live.Payload != nil || live.Annotations[plumbline.RepositoryAnnotation] == "" {
		t.Errorf("%+v is left", live)
	}
	apart := event.DeepCopy()
	apart.Spec.Payload = v1alpha1.BlobReference{Name: "push-1-x", Chunks: 1}
	apart.Status.Plan = &v1alpha1.Plan{}
	if err := w.store.Of(apart).Remove(t.Context()); err != nil ||
		!slices.Equal(w.calls(), []string{"delete eventpayloads"}) {
		t.Errorf("%v, want one delete", err)
	}
}
