// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"slices"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Renewals go before whatever else waits for their installation, whoever's it is and how long it
// has waited; also of an event that stood in the line before its token had to be renewed. Only the
// share of their namespace can hold them up.
func TestRenewalsGoFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 64)
	var begun []func()
	visits, renewals := map[string]Visit{}, 0
	come := func(v Visit) {
		t.Helper()
		release, err := w.Begin(v, false)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		visits[v.Event] = v
		if visiting, err := w.Visit(v); err == nil {
			begun = append(begun, visiting)
		}
	}
	var standing Visit
	for range 200 {
		for _, namespace := range []string{"a", "b", "c"} {
			standing = w.visit(namespace, "github.com", 1)
			come(standing)
		}
	}
	for n := range 60 {
		v := w.visit("b", "github.com", 1)
		if n == 0 {
			v = standing // of c
		}
		v.Renews = true
		renewals++
		come(v)
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
			} else if s := w.shares[place{NamespaceHost, "b at github.com"}]; s.taken < s.limit {
				t.Fatalf("after %d visits %s of %s came before %d renewals, although their namespace had %d of %d turns", n, event, v.Namespace, renewals, s.taken, s.limit)
			}
			come(visits[event])
		}
		w.woken = nil
	}
}

// The places in the lines are divided by namespace: one with a backlog that took them all makes
// room for whoever has fewer. What it loses comes back by itself.
func TestPlacesAreDivided(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 16)
	begun := []func(){w.begin(w.visit("busy", "git.example", 0)), w.begin(w.visit("busy", "git.example", 0)), w.begin(w.visit("busy", "git.example", 0))}
	last := ""
	for range maxWaiting {
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
	if w.total != maxWaiting || w.places["one"] < others-3 || w.places["two"] < others-3 {
		t.Errorf("of %d places %v are taken", w.total, w.places)
	}
	if n := w.places["one"] + w.places["two"]; len(w.late) != n || !slices.Contains(w.late, last+" after "+Unlisted.String()) {
		t.Errorf("%d made room for %d, among them the last of all: %t", len(w.late), n, slices.Contains(w.late, last+" after "+Unlisted.String()))
	}
	_, err := w.Begin(w.visit("busy", "git.example", 0), true)
	if f := fault.Of(err); f == nil || f.RetryAfter != Unlisted {
		t.Errorf("the namespace with the most places gets one more: %+v", f)
	}
	for len(begun) > 0 {
		begun[0]()
		begun = begun[1:]
		for len(w.woken) > 0 {
			settled := w.woken[0]
			w.woken = w.woken[1:]
			w.Leave(settled)
		}
	}
	w.nothingLeft()
}
