// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/provider"
	asks "github.com/plumbline-ci/plumbline/pkg/store/signal"
)

// What came while nobody was there is asked for when a receiver says that it is there again, two a
// second, and once.
func TestMissedDeliveriesAreAskedFor(t *testing.T) {
	w := newWorld(t)
	w.run(time.Minute)
	w.receive = nobody
	var all []string
	for n := range 12 {
		guid := fmt.Sprint("missed-", n)
		w.deliver(guid, int64(n%3+1))
		all = append(all, guid)
		w.clock.Step(time.Second)
	}
	w.attempt("unhandled", 1, false, false)
	w.deliver("of somebody else", 99)
	w.receive = nil
	w.deliver("afterwards", 1)
	w.heard()
	began := w.clock.Now()
	for len(w.asked) < len(all) {
		w.clock.Step(w.reconcile())
	}
	if took := w.clock.Since(began); took < 5*time.Second || took > 20*time.Second {
		t.Errorf("12 redeliveries took %v", took)
	}
	w.run(10 * time.Minute)
	w.wantRecorded(all...)
	slices.Sort(w.asked)
	if slices.Sort(all); !slices.Equal(all, w.asked) {
		t.Errorf("asked for %q", w.asked)
	}
	if left := w.missing(); len(left) != 0 {
		t.Errorf("the ledger has %+v", left)
	}
}

// Without a word of a receiver they are found within minutes. A look costs one page when nothing
// happened.
func TestMissedDeliveriesAreFoundAnyway(t *testing.T) {
	w := newWorld(t)
	w.run(time.Minute)
	w.receive = nobody
	w.deliver("missed", 1)
	w.receive = nil
	w.run(lookEvery)
	w.wantRecorded("missed")
	w.run(10 * time.Minute)
	pages := w.pages
	w.run(time.Hour)
	if looks := w.pages - pages; looks > 13 {
		t.Errorf("%d calls in a quiet hour", looks)
	}
}

// What was missed before Plumbline was installed is not its business.
func TestNothingFromBeforeTheInstallation(t *testing.T) {
	w := newWorld(t)
	w.log = []provider.Attempt{{ID: 1, GUID: "old", At: w.clock.Now().Add(-2 * time.Hour), Starts: true, Repository: 1}}
	w.receive = nobody
	w.deliver("new", 1)
	w.receive = nil
	w.run(time.Hour)
	if !slices.Equal(w.asked, []string{"new"}) {
		t.Errorf("asked for %q", w.asked)
	}
}

// A delivery that is refused again and again while others are taken is given up, and its Repository
// is told; it was asked for further and further apart. It is not asked for again, by no process and
// whatever is read again.
func TestARefusedDeliveryIsGivenUp(t *testing.T) {
	w := newWorld(t)
	w.receive = refuses("poison")
	w.deliver("poison", 2)
	w.clock.Step(time.Second)
	w.deliver("good", 1)
	w.clock.Step(time.Second)
	var at []time.Duration
	for began, n := w.clock.Now(), 0; w.clock.Since(began) < 6*time.Hour; n++ {
		w.clock.Step(min(w.reconcile(), time.Minute))
		w.heard() // a receiver that answers 503 says so each time
		w.deliver(fmt.Sprint("good-", n), 1)
		if len(w.asked) > len(at) {
			at = append(at, w.clock.Since(began).Round(time.Minute))
		}
		if n%10 == 0 {
			w.start()
		}
	}
	if len(at) != maxRefused || at[2] < 5*time.Minute || at[2] > 20*time.Minute {
		t.Errorf("it was asked for after %v", at)
	}
	select {
	case event := <-w.events.Events:
		if !strings.Contains(event, reasonGivenUp) || !strings.Contains(event, "poison") || !strings.Contains(event, "Redeliver") {
			t.Errorf("the Repository is told %q", event)
		}
	default:
		t.Error("the Repository is told nothing")
	}
	if len(w.events.Events) != 0 {
		t.Error("the Repository is told twice")
	}
}

// An outage refuses nobody: however long it lasts, what came meanwhile is asked for when it is
// over. While it lasts few are asked for.
func TestALongOutage(t *testing.T) {
	w := newWorld(t)
	w.deliver("before", 1)
	w.receive = nobody
	var all []string
	for n := range 300 {
		w.clock.Step(time.Second)
		guid := fmt.Sprint("missed-", n)
		w.deliver(guid, 1)
		all = append(all, guid)
	}
	w.clock.Step(time.Second)
	w.run(3 * time.Hour)
	if n := len(w.asked); n == 0 || n > 3*60+20 {
		t.Errorf("%d redeliveries were asked for in an outage of three hours", n)
	}
	w.receive = nil
	w.heard()
	began := w.clock.Now()
	for slices.ContainsFunc(all, func(guid string) bool { return w.recorded[guid] == 0 }) {
		w.clock.Step(w.reconcile())
		if w.clock.Since(began) > time.Hour {
			t.Fatalf("%d are missing", len(w.missing()))
		}
	}
	if took := w.clock.Since(began); took > 6*time.Minute {
		t.Errorf("300 deliveries took %v after the outage", took)
	}
	if len(w.events.Events) != 0 {
		t.Errorf("somebody was told %q", <-w.events.Events)
	}
}

// A process that is killed at any call, before it has had its effect or after, leaves to the next
// one what that needs.
func TestKilledAtAnyCall(t *testing.T) {
	for _, after := range []bool{false, true} {
		for k := 1; ; k++ {
			w := newWorld(t)
			w.receive = nobody
			for n := range 4 {
				w.deliver(fmt.Sprint("missed-", n), 1)
			}
			w.receive = refuses("missed-3")
			w.deliver("others", 2)
			w.clock.Step(2 * overlap) // what is read twice anyway would hide what is lost
			w.calls, w.after = k, after
			for began := w.clock.Now(); w.calls != 0 && w.clock.Since(began) < time.Minute; {
				w.clock.Step(w.reconcile())
			}
			killed := w.calls == 0
			w.calls = -1
			w.start()
			w.receive = nil
			w.run(10 * time.Minute)
			w.wantRecorded("missed-0", "missed-1", "missed-2", "missed-3")
			if left := w.missing(); len(left) != 0 {
				t.Errorf("killed at call %d (after it: %t): the ledger has %+v", k, after, left)
			}
			for n := range 3 { // one that was killed before it could tell asks once more at most
				guid := fmt.Sprint("missed-", n)
				if w.recorded[guid] > 2 {
					t.Errorf("killed at call %d (after it: %t): %s was sent again %d times", k, after, guid, w.recorded[guid])
				}
			}
			if !killed {
				if k < 8 {
					t.Errorf("only %d calls", k)
				}
				break
			}
		}
	}
}

// A ledger that is lost or spoilt is made again of the log, with what was given up.
func TestALostLedger(t *testing.T) {
	for _, text := range []string{"", "{", `{"missed":[]}`} {
		w := newWorld(t)
		w.deliver("recorded", 1)
		w.receive = nobody
		w.deliver("missed", 1)
		w.receive = nil
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: asks.Ledger, CreationTimestamp: metav1.NewTime(w.clock.Now().Add(-time.Hour))}}
		cm.Data = map[string]string{ledgerKey: text}
		if err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("configmaps"), cm, system); err != nil {
			t.Fatal(err)
		}
		w.run(time.Minute)
		if !slices.Equal(w.asked, []string{"missed"}) {
			t.Errorf("with %q: asked for %q", text, w.asked)
		}
	}
}

// A Repository that is new may have missed its first delivery: its number is not known yet. So
// everybody's are asked for.
func TestARepositoryWhoseNumberIsNotKnown(t *testing.T) {
	for name, unbind := range map[string]func(w *world){
		"claimed":     func(w *world) { w.serve(4); w.unbind(4) },
		"not claimed": func(w *world) { w.serve(4); w.unclaim(4) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			unbind(w)
			w.receive = nobody
			w.deliver("first", 4)
			w.receive = nil
			w.run(time.Minute)
			w.wantRecorded("first")
		})
	}
}

// Until the claims are known nothing is looked for: all deliveries would be somebody else's.
func TestNoLookWithoutClaims(t *testing.T) {
	w := newWorld(t)
	w.receive = nobody
	w.deliver("missed", 1)
	w.receive = nil
	w.process.known = func() bool { return false }
	w.run(time.Minute)
	if w.pages != 0 {
		t.Error("the log was read")
	}
	w.process.known = func() bool { return true }
	w.run(time.Minute)
	w.wantRecorded("missed")
}

// What the service has forgotten is given up once.
func TestTheServiceHasForgotten(t *testing.T) {
	w := newWorld(t)
	w.receive = nobody
	w.deliver("missed", 1)
	w.gone = true
	w.run(time.Hour)
	if n := len(w.events.Events); n != 1 {
		t.Errorf("the Repository is told %d times", n)
	}
}

// One whose lease has ended asks for nothing, and an installation without an App has nothing to
// look at.
func TestWhoHasNothingToDo(t *testing.T) {
	w := newWorld(t)
	w.receive = nobody
	w.deliver("missed", 1)
	w.receive = func(string) int { return http.StatusAccepted }
	if err := w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), system, app); err != nil {
		t.Fatal(err)
	}
	w.run(time.Hour)
	w.process.Demote(w.bucket())
	if err := w.process.Reconcile(t.Context(), system+"/"+app); err == nil {
		t.Error("the key is not skipped")
	}
	if w.pages != 0 || len(w.asked) != 0 {
		t.Errorf("%d pages were read, %q asked for", w.pages, w.asked)
	}
}
