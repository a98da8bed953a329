// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/tombstone"
)

func (w *env) fill(n int) {
	for i := range n {
		w.settled(fmt.Sprintf("%s-%d", w.clock.Now(), i))
	}
}

func (w *env) buried(e *v1alpha1.GitEvent) (tombstone.Entry, bool) {
	page := w.pages[tombstone.PageOf(e.Name)]
	if page == nil {
		return tombstone.Entry{}, false
	}
	return tombstone.Find(page, e.Name, w.clock.Now())
}

func TestExpiredEventsAreDeletedAndEvictedOnesLeaveATombstone(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.settings = map[string]string{"settled-cap": "100"}
	w.restart()
	old := w.settled("old")
	w.later(time.Minute)
	done, refused := w.settled("done"), w.settled("refused")
	refused.Status.Disposition = v1alpha1.DispositionRefused
	hand := w.settled("made by hand")
	delete(w.events, hand.Name)
	hand.Name = "made-by-hand"
	w.events[hand.Name] = hand
	w.later(4*24*time.Hour - time.Minute)
	w.fill(100)
	open := w.settled("open")
	open.Status.Phase = ""
	w.pass()
	if w.events[old.Name] != nil {
		t.Error("an event older than its deliveries' is still there")
	}
	if _, found := w.buried(old); found {
		t.Error("it has a tombstone although its delivery cannot come again")
	}
	if len(w.events) != 101 || w.events[open.Name] == nil {
		t.Errorf("%d events are left, the open one: %v; want the newest 100 and it", len(w.events),
			w.events[open.Name] != nil)
	}
	for _, c := range []struct {
		event *v1alpha1.GitEvent
		again bool
	}{{done, false}, {refused, true}} {
		if entry, found := w.buried(c.event); !found || entry.Again != c.again ||
			!entry.Records(c.event.Spec.Payload.Digest) {
			t.Errorf("%s left %+v (%v)", c.event.Name, entry, found)
		}
	}
	w.later(time.Minute)
	w.pass()
	if _, found := w.buried(done); found || len(w.pages) != 1 {
		t.Errorf("%d pages are left, want that of the refused event", len(w.pages))
	}
	w.later(4 * 24 * time.Hour)
	w.pass()
	if len(w.pages) != 0 {
		t.Errorf("%d pages are left when all of their tombstones have expired", len(w.pages))
	}
}

// A receiver that finds neither an event nor a tombstone would process the delivery again.
func TestTombstoneIsWrittenBeforeItsEventIsDeleted(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.settings = map[string]string{"settled-cap": "100"}
	w.restart()
	w.fill(150)
	w.pass()
	if len(w.events) != 150 {
		t.Errorf("%d events are left of those that have just ended, want all", len(w.events))
	}
	w.later(youngest)
	fails := true
	w.answer = func(call, name string) error {
		if call == "delete gitevents" {
			if _, found := w.buried(w.events[name]); !found {
				t.Errorf("%s is deleted before its tombstone is written", name)
			}
		}
		if fails && (call == "create tombstonepages" || call == "update tombstonepages") {
			return apierrors.NewForbidden(v1alpha1.Resource("tombstonepages"), name, nil)
		}
		return nil
	}
	w.pass()
	if len(w.events) != 150 {
		t.Errorf("%d events are left although no tombstone could be written", len(w.events))
	}
	fails = false
	w.pass()
	if len(w.events) != 100 {
		t.Errorf("%d events are left, want 100", len(w.events))
	}
}

// The redelivery of a refused event ran three days later, and can be redelivered for three more
// days. Without a record until then, it would run again under its name.
func TestProcessedRedeliveryIsRememberedAsLongAsADelivery(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]int{"its stub expires": 1000, "its stub was evicted": 100} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t)
			w.settings = map[string]string{"settled-cap": fmt.Sprint(keep)}
			w.restart()
			refused := w.settled("refused")
			refused.Status.Disposition = v1alpha1.DispositionRefused
			w.later(3 * 24 * time.Hour)
			w.fill(100)
			w.pass()
			w.later(3*24*time.Hour - time.Second)
			w.pass()
			if entry, found := w.buried(refused); !found || !entry.Again || w.events[refused.Name] != nil {
				t.Errorf("its tombstone is %+v (%v), the event is there: %v", entry, found, w.events[refused.Name] != nil)
			}
			w.later(3 * 24 * time.Hour)
			w.pass()
			if len(w.pages) != 0 {
				t.Errorf("%d pages are left", len(w.pages))
			}
		})
	}
}

func TestBadObjectStopsNothingElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(w *env)
		left  int // of the payloads
	}{
		"a payload without a label":        {func(w *env) { w.payload("a", "") }, 1},
		"a payload whose label is no name": {func(w *env) { w.payload("a", "No_Name") }, 1},
		"a payload that cannot be deleted": {
			func(w *env) { w.payload("a", "push-1"); w.refuse("delete eventpayloads", "a") }, 1,
		},
		"a settled event without a time": {func(w *env) { w.settled("x").Status.SettledAt = nil }, 0},
		"a marked one without a time": {
			func(w *env) { e := w.settled("x"); e.Status.SettledAt, e.Status.LateSecrets = nil, true }, 0,
		},
		"an event that cannot be deleted":            {func(w *env) { w.refuse("delete gitevents", w.settled("x").Name) }, 0},
		"an event that cannot be read":               {func(w *env) { w.refuse("get gitevents", w.settled("x").Name) }, 0},
		"an event that the API server never answers": {func(w *env) { w.hang("get gitevents", w.settled("x").Name) }, 0},
		"an event at which the sweep panics": {
			func(w *env) { w.panicAt("delete gitevents", w.settled("x").Name) }, 0,
		},
		"a page that a user wrote": {func(w *env) {
			w.pages["x"] = &v1alpha1.TombstonePage{ObjectMeta: w.object("x"), Entries: []string{"x", ""}}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t)
			w.settings = map[string]string{"settled-cap": "100"}
			w.restart()
			c.spoil(w)
			w.fill(10)
			w.payload("z", "push-2")
			w.later(5 * 24 * time.Hour)
			w.fill(110)
			w.later(youngest)
			w.pass()
			if len(w.payloads) != c.left {
				t.Errorf("payloads %v are left, want %d", w.payloads, c.left)
			}
			if len(w.events) > 101 {
				t.Errorf("%d events are left", len(w.events))
			}
		})
	}
}

func (w *env) refuse(call, name string) {
	w.on(call, name, func() error { return apierrors.NewForbidden(v1alpha1.Resource("x"), name, nil) })
}

func (w *env) hang(call, name string) {
	w.on(call, name, func() error { return context.DeadlineExceeded })
}

func (w *env) panicAt(call, name string) { w.on(call, name, func() error { panic("poison") }) }

func (w *env) on(call, name string, answer func() error) {
	w.answer = func(c, n string) error {
		if c == call && n == name {
			return answer()
		}
		return nil
	}
}

func TestOnlyUnneededPayloadsAreDeleted(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	open, settled := w.settled("open"), w.settled("settled")
	open.Status.Phase = ""
	w.payload("of-open", open.Name)
	w.payload("of-settled", settled.Name)
	w.payload("of-cached", "push-cached")
	w.payload("of-nobody", "push-nobody")
	w.sweep.open = func(event string) bool { return event == "push-cached" }
	w.later(orphanAge - time.Second)
	w.pass()
	if len(w.payloads) != 4 {
		t.Errorf("%d payloads are left, want all: their events may be about to be created", len(w.payloads))
	}
	w.later(time.Second)
	w.pass()
	if w.payloads["of-open"] == nil || w.payloads["of-cached"] == nil || len(w.payloads) != 2 {
		t.Errorf("payloads %v are left", w.payloads)
	}
}

func (w *env) secrets() int {
	w.t.Helper()
	list, err := w.kube.Tracker().List(corev1.SchemeGroupVersion.WithResource("secrets"),
		corev1.SchemeGroupVersion.WithKind("Secret"), "")
	w.must(err)
	all, ok := list.(*corev1.SecretList)
	if !ok {
		w.t.Fatalf("unexpected %T", list)
	}
	return len(all.Items)
}

func TestMarkedEventStaysUntilItsSecretsAreDeleted(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	event := w.settled("taken over")
	w.later(5 * 24 * time.Hour)
	event.Status.LateSecrets, event.Status.SettledAt = true, &metav1.Time{Time: w.clock.Now()}
	w.pass()
	if w.events[event.Name] == nil {
		t.Fatal("deleted")
	}
	w.later(lateFor)
	w.pass()
	w.pass()
	if w.events[event.Name] != nil {
		t.Error("kept forever")
	}
}
