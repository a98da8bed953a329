// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"slices"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Renewals are served before all other events of their installation, however long these have
// waited; also that of an event that was queued before its token was due. Only the limits of their
// namespace delay them.
func TestRenewalsAreServedFirst(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 64)
	var begun []func()
	visits, renewals := map[string]Request{}, 0
	arrive := func(v Request) {
		t.Helper()
		release, err := w.AcquireWorker(v, false)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		visits[v.Event] = v
		if visiting, err := w.AcquireService(v); err == nil {
			begun = append(begun, visiting)
		}
	}
	var standing Request
	for range 200 {
		for _, namespace := range []string{"a", "b", "c"} {
			standing = w.visit(namespace, "github.com", 1)
			arrive(standing)
		}
	}
	for n := range 60 {
		v := w.visit("b", "github.com", 1)
		if n == 0 {
			v = standing // of c
		}
		v.Renews = true
		renewals++
		arrive(v)
	}
	for n := 0; renewals > 0; n++ {
		if n == 600 {
			t.Fatalf("%d renewals still wait", renewals)
		}
		begun[0]()
		begun = begun[1:]
		for _, event := range w.woken {
			if v := visits[event]; v.Renews {
				renewals--
			} else if s := w.limiter.limits[key{NamespaceHost, "b at github.com"}]; s.used < s.max {
				t.Fatalf("after %d visits %s of %s came before %d renewals, although their namespace had %d of %d slots", n, event,
					v.Namespace, renewals, s.used, s.max)
			}
			arrive(visits[event])
		}
		w.woken = nil
	}
}

// A full queue is shared by the namespaces: events of one with a backlog are evicted for those of
// namespaces with fewer. An evicted event is requeued after a time.
func TestFullQueueIsSharedByNamespaces(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 16)
	begun := []func(){w.begin(w.visit("busy", "git.example", 0)), w.begin(w.visit("busy", "git.example", 0)),
		w.begin(w.visit("busy", "git.example", 0))}
	last := ""
	for range maxQueued {
		v := w.visit("busy", "git.example", 0)
		last = v.Event
		w.begin(v)
	}
	const others = 50
	for range others {
		for _, namespace := range []string{"one", "two"} {
			v := w.visit(namespace, "git.example", 0)
			if release := w.begin(v); release != nil {
				begun = append(begun, release)
			}
		}
	}
	if w.queued != maxQueued || w.queuedOf["one"] < others-3 || w.queuedOf["two"] < others-3 {
		t.Errorf("of %d places %v are taken", w.queued, w.queuedOf)
	}
	if n := w.queuedOf["one"] + w.queuedOf["two"]; len(w.late) != n ||
		!slices.Contains(w.late, last+" after "+RetryUnqueued.String()) {
		t.Errorf("%d made room for %d, among them the last of all: %t", len(w.late), n,
			slices.Contains(w.late, last+" after "+RetryUnqueued.String()))
	}
	_, err := w.AcquireWorker(w.visit("busy", "git.example", 0), true)
	if f := fault.Of(err); f == nil || f.RetryAfter != RetryUnqueued {
		t.Errorf("the namespace with the most places gets one more: %+v", f)
	}
	for len(begun) > 0 {
		begun[0]()
		begun = begun[1:]
		for len(w.woken) > 0 {
			settled := w.woken[0]
			w.woken = w.woken[1:]
			w.Remove(settled)
		}
	}
	w.nothingLeft()
}
