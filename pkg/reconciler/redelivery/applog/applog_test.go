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
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
	asks "github.com/plumbline-ci/plumbline/pkg/store/signal"
)

// What came while nobody was there is asked for when a receiver says that it is there again, two a
// second, and once.
func TestMissedDeliveriesAreAskedFor(t *testing.T) {
	e := newEnv(t)
	e.run(time.Minute)
	e.receive = nobody
	var all []string
	for n := range 12 {
		guid := fmt.Sprint("missed-", n)
		e.deliver(guid, int64(n%3+1))
		all = append(all, guid)
		e.clock.Step(time.Second)
	}
	e.attempt("unhandled", 1, false, false)
	e.deliver("of somebody else", 99)
	e.receive = nil
	e.deliver("afterwards", 1)
	e.signal()
	began := e.clock.Now()
	for len(e.asked) < len(all) {
		e.clock.Step(e.reconcile())
	}
	if took := e.clock.Since(began); took < 5*time.Second || took > 20*time.Second {
		t.Errorf("12 redeliveries took %v", took)
	}
	e.run(10 * time.Minute)
	e.wantRecorded(all...)
	slices.Sort(e.asked)
	if slices.Sort(all); !slices.Equal(all, e.asked) {
		t.Errorf("asked for %q", e.asked)
	}
	if left := e.missing(); len(left) != 0 {
		t.Errorf("the ledger has %+v", left)
	}
}

// Without a word of a receiver they are found within minutes. A look costs one page when nothing
// happened.
func TestMissedDeliveriesAreFoundAnyway(t *testing.T) {
	e := newEnv(t)
	e.run(time.Minute)
	e.receive = nobody
	e.deliver("missed", 1)
	e.receive = nil
	e.run(redelivery.ReadEvery)
	e.wantRecorded("missed")
	e.run(10 * time.Minute)
	pages := e.pages
	e.run(time.Hour)
	if looks := e.pages - pages; looks > 13 {
		t.Errorf("%d calls in a quiet hour", looks)
	}
}

// What was missed before Plumbline was installed is not its business.
func TestNothingFromBeforeTheInstallation(t *testing.T) {
	e := newEnv(t)
	e.log = []provider.Attempt{{ID: 1, GUID: "old", At: e.clock.Now().Add(-2 * time.Hour), Starts: true, Repository: 1}}
	e.receive = nobody
	e.deliver("new", 1)
	e.receive = nil
	e.run(time.Hour)
	if !slices.Equal(e.asked, []string{"new"}) {
		t.Errorf("asked for %q", e.asked)
	}
}

// A delivery that is refused again and again while others are taken is given up, and its Repository
// is told; it was asked for further and further apart. It is not asked for again, by no process and
// whatever is read again.
func TestARefusedDeliveryIsGivenUp(t *testing.T) {
	e := newEnv(t)
	e.receive = refuses("poison")
	e.deliver("poison", 2)
	e.clock.Step(time.Second)
	e.deliver("good", 1)
	e.clock.Step(time.Second)
	var at []time.Duration
	for began, n := e.clock.Now(), 0; e.clock.Since(began) < 6*time.Hour; n++ {
		e.clock.Step(min(e.reconcile(), time.Minute))
		e.signal() // a receiver that answers 503 says so each time
		e.deliver(fmt.Sprint("good-", n), 1)
		if len(e.asked) > len(at) {
			at = append(at, e.clock.Since(began).Round(time.Minute))
		}
		if n%10 == 0 {
			e.start()
		}
	}
	if len(at) != redelivery.MaxRefused || at[2] < 5*time.Minute || at[2] > 20*time.Minute {
		t.Errorf("it was asked for after %v", at)
	}
	select {
	case event := <-e.events.Events:
		if !strings.Contains(event, redelivery.ReasonGivenUp) || !strings.Contains(event, "poison") || !strings.Contains(event, "Redeliver") {
			t.Errorf("the Repository is told %q", event)
		}
	default:
		t.Error("the Repository is told nothing")
	}
	if len(e.events.Events) != 0 {
		t.Error("the Repository is told twice")
	}
}

// An outage refuses nobody: however long it lasts, what came meanwhile is asked for when it is
// over. While it lasts few are asked for.
func TestALongOutage(t *testing.T) {
	e := newEnv(t)
	e.deliver("before", 1)
	e.receive = nobody
	var all []string
	for n := range 300 {
		e.clock.Step(time.Second)
		guid := fmt.Sprint("missed-", n)
		e.deliver(guid, 1)
		all = append(all, guid)
	}
	e.clock.Step(time.Second)
	e.run(3 * time.Hour)
	if n := len(e.asked); n == 0 || n > 3*60+20 {
		t.Errorf("%d redeliveries were asked for in an outage of three hours", n)
	}
	e.receive = nil
	e.signal()
	began := e.clock.Now()
	for slices.ContainsFunc(all, func(guid string) bool { return e.recorded[guid] == 0 }) {
		e.clock.Step(e.reconcile())
		if e.clock.Since(began) > time.Hour {
			t.Fatalf("%d are missing", len(e.missing()))
		}
	}
	if took := e.clock.Since(began); took > 6*time.Minute {
		t.Errorf("300 deliveries took %v after the outage", took)
	}
	if len(e.events.Events) != 0 {
		t.Errorf("somebody was told %q", <-e.events.Events)
	}
}

// A process that is killed at any call, before it has had its effect or after, leaves to the next
// one what that needs.
func TestKilledAtAnyCall(t *testing.T) {
	for _, after := range []bool{false, true} {
		for k := 1; ; k++ {
			e := newEnv(t)
			e.receive = nobody
			for n := range 4 {
				e.deliver(fmt.Sprint("missed-", n), 1)
			}
			e.receive = refuses("missed-3")
			e.deliver("others", 2)
			e.clock.Step(2 * redelivery.Overlap) // what is read twice anyway would hide what is lost
			e.calls, e.after = k, after
			for began := e.clock.Now(); e.calls != 0 && e.clock.Since(began) < time.Minute; {
				e.clock.Step(e.reconcile())
			}
			killed := e.calls == 0
			e.calls = -1
			e.start()
			e.receive = nil
			e.run(10 * time.Minute)
			e.wantRecorded("missed-0", "missed-1", "missed-2", "missed-3")
			if left := e.missing(); len(left) != 0 {
				t.Errorf("killed at call %d (after it: %t): the ledger has %+v", k, after, left)
			}
			for n := range 3 { // one that was killed before it could tell asks once more at most
				guid := fmt.Sprint("missed-", n)
				if e.recorded[guid] > 2 {
					t.Errorf("killed at call %d (after it: %t): %s was sent again %d times", k, after, guid, e.recorded[guid])
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
		e := newEnv(t)
		e.deliver("recorded", 1)
		e.receive = nobody
		e.deliver("missed", 1)
		e.receive = nil
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: asks.Ledger, CreationTimestamp: metav1.NewTime(e.clock.Now().Add(-time.Hour))}}
		cm.Data = map[string]string{ledgerKey: text}
		if err := e.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("configmaps"), cm, system); err != nil {
			t.Fatal(err)
		}
		e.run(time.Minute)
		if !slices.Equal(e.asked, []string{"missed"}) {
			t.Errorf("with %q: asked for %q", text, e.asked)
		}
	}
}

// A Repository that is new may have missed its first delivery: its number is not known yet. So
// everybody's are asked for.
func TestARepositoryWhoseNumberIsNotKnown(t *testing.T) {
	for name, unbind := range map[string]func(e *env){
		"claimed":     func(e *env) { e.serve(4); e.unbind(4) },
		"not claimed": func(e *env) { e.serve(4); e.unclaim(4) },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			unbind(e)
			e.receive = nobody
			e.deliver("first", 4)
			e.receive = nil
			e.run(time.Minute)
			e.wantRecorded("first")
		})
	}
}

// Until the claims are known nothing is looked for: all deliveries would be somebody else's.
func TestNoLookWithoutClaims(t *testing.T) {
	e := newEnv(t)
	e.receive = nobody
	e.deliver("missed", 1)
	e.receive = nil
	e.source.known = func() bool { return false }
	e.run(time.Minute)
	if e.pages != 0 {
		t.Error("the log was read")
	}
	e.source.known = func() bool { return true }
	e.run(time.Minute)
	e.wantRecorded("missed")
}

// What the service has forgotten is given up once.
func TestTheServiceHasForgotten(t *testing.T) {
	e := newEnv(t)
	e.receive = nobody
	e.deliver("missed", 1)
	e.gone = true
	e.run(time.Hour)
	if n := len(e.events.Events); n != 1 {
		t.Errorf("the Repository is told %d times", n)
	}
}

// One whose lease has ended asks for nothing, and an installation without an App has nothing to
// look at.
func TestWhoHasNothingToDo(t *testing.T) {
	e := newEnv(t)
	e.receive = nobody
	e.deliver("missed", 1)
	e.receive = func(string) int { return http.StatusAccepted }
	if err := e.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), system, app); err != nil {
		t.Fatal(err)
	}
	e.run(time.Hour)
	e.process.Demote(e.bucket())
	if err := e.process.Reconcile(t.Context(), system+"/"+app); err == nil {
		t.Error("the key is not skipped")
	}
	if e.pages != 0 || len(e.asked) != 0 {
		t.Errorf("%d pages were read, %q asked for", e.pages, e.asked)
	}
}
