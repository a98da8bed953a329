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
	pkgreconciler "knative.dev/pkg/reconciler"

	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
	asks "github.com/plumbline-ci/plumbline/pkg/store/signal"
)

// Deliveries that no receiver took are requested when a receiver signals: two a second, and once
// each.
func TestUndeliveredWebhooksAreRequestedAfterASignal(t *testing.T) {
	e := newEnv(t)
	e.run(time.Minute)
	e.receive = unreachable
	var all []string
	for n := range 12 {
		guid := fmt.Sprint("missed-", n)
		e.deliver(guid, int64(n%3+1))
		all = append(all, guid)
		e.clock.Step(time.Second)
	}
	e.attempt("unhandled", 1, false, false)
	e.deliver("of another installation", 99)
	e.receive = nil
	e.deliver("afterwards", 1)
	e.signal()
	began := e.clock.Now()
	for len(e.requests) < len(all) {
		e.clock.Step(e.reconcile())
	}
	if took := e.clock.Since(began); took < 5*time.Second || took > 20*time.Second {
		t.Errorf("12 redeliveries took %v", took)
	}
	e.run(10 * time.Minute)
	e.wantRecorded(all...)
	slices.Sort(e.requests)
	if slices.Sort(all); !slices.Equal(all, e.requests) {
		t.Errorf("requested %q", e.requests)
	}
	if left := e.missing(); len(left) != 0 {
		t.Errorf("the ledger has %+v", left)
	}
}

// Without a signal they are found within minutes. A read costs one page when nothing happened.
func TestUndeliveredWebhooksAreFoundWithoutASignal(t *testing.T) {
	e := newEnv(t)
	e.run(time.Minute)
	e.miss("missed", 1)
	e.run(redelivery.ReadEvery)
	e.wantRecorded("missed")
	e.run(10 * time.Minute)
	pages := e.pages
	e.run(time.Hour)
	if reads := e.pages - pages; reads > 13 {
		t.Errorf("%d calls in a quiet hour", reads)
	}
}

func TestDeliveriesBeforeTheInstallationAreIgnored(t *testing.T) {
	e := newEnv(t)
	e.log = []provider.Attempt{{ID: 1, GUID: "old", At: e.clock.Now().Add(-2 * time.Hour), Starts: true, Repository: 1}}
	e.miss("new", 1)
	e.run(time.Hour)
	if !slices.Equal(e.requests, []string{"new"}) {
		t.Errorf("requested %q", e.requests)
	}
}

// A delivery that keeps failing while others succeed is given up, and its Repository gets an Event.
// The waits between the requests grow. No later process requests it again.
func TestRefusedDeliveryIsGivenUp(t *testing.T) {
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
		if len(e.requests) > len(at) {
			at = append(at, e.clock.Since(began).Round(time.Minute))
		}
		if n%10 == 0 {
			e.start()
		}
	}
	if len(at) != redelivery.MaxRefused || at[2] < 5*time.Minute || at[2] > 20*time.Minute {
		t.Errorf("it was requested after %v", at)
	}
	select {
	case event := <-e.events.Events:
		if !strings.Contains(event, redelivery.ReasonGivenUp) || !strings.Contains(event, "poison") ||
			!strings.Contains(event, "Redeliver") {
			t.Errorf("the Repository gets the Event %q", event)
		}
	default:
		t.Error("the Repository gets no Event")
	}
	if len(e.events.Events) != 0 {
		t.Error("the Repository gets two Events")
	}
}

// However long an outage lasts, its deliveries are requested afterwards. Few are requested while it
// lasts.
func TestOutageGivesUpNothing(t *testing.T) {
	e := newEnv(t)
	e.deliver("before", 1)
	e.receive = unreachable
	var all []string
	for n := range 300 {
		e.clock.Step(time.Second)
		guid := fmt.Sprint("missed-", n)
		e.deliver(guid, 1)
		all = append(all, guid)
	}
	e.clock.Step(time.Second)
	e.run(3 * time.Hour)
	if n := len(e.requests); n == 0 || n > 3*60+20 {
		t.Errorf("%d redeliveries were requested in an outage of three hours", n)
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
		t.Errorf("an Event says %q", <-e.events.Events)
	}
}

// A process is killed at each call, before or after its effect. The next process goes on.
func TestProcessKilledAtAnyCallLosesNothing(t *testing.T) {
	for _, after := range []bool{false, true} {
		for k := 1; ; k++ {
			e := newEnv(t)
			e.receive = unreachable
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

// A ledger that is lost or broken is rebuilt from the log.
func TestLostLedgerIsRebuiltFromTheLog(t *testing.T) {
	for _, text := range []string{"", "{", `{"missed":[]}`} {
		e := newEnv(t)
		e.deliver("recorded", 1)
		e.miss("missed", 1)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: system, Name: asks.Ledger, CreationTimestamp: metav1.NewTime(e.clock.Now().Add(-time.Hour)),
		}}
		cm.Data = map[string]string{ledgerKey: text}
		if err := e.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("configmaps"), cm, system); err != nil {
			t.Fatal(err)
		}
		e.run(time.Minute)
		if !slices.Equal(e.requests, []string{"missed"}) {
			t.Errorf("with %q: requested %q", text, e.requests)
		}
	}
}

// The number of a new Repository is not known before its first event is planned. Until then all
// undelivered webhooks are requested.
func TestNewRepositoryGetsItsFirstDelivery(t *testing.T) {
	for name, unbind := range map[string]func(e *env){
		"claimed":     func(e *env) { e.serve(4); e.unbind(4) },
		"not claimed": func(e *env) { e.serve(4); e.unclaim(4) },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			unbind(e)
			e.miss("first", 4)
			e.run(time.Minute)
			e.wantRecorded("first")
		})
	}
}

// Without the claims all deliveries would seem to be of other installations.
func TestLogIsNotReadBeforeTheClaimsAreKnown(t *testing.T) {
	e := newEnv(t)
	e.miss("missed", 1)
	e.source.known = func() bool { return false }
	e.run(time.Minute)
	if e.pages != 0 {
		t.Error("the log was read")
	}
	e.source.known = func() bool { return true }
	e.run(time.Minute)
	e.wantRecorded("missed")
}

func TestDeliveryThatGitHubHasDroppedIsGivenUpOnce(t *testing.T) {
	e := newEnv(t)
	e.receive = unreachable
	e.deliver("missed", 1)
	e.gone = true
	e.run(time.Hour)
	if n := len(e.events.Events); n != 1 {
		t.Errorf("the Repository gets %d Events", n)
	}
}

// A process without the lease requests nothing. An installation without an App reads nothing.
func TestNoRequestsWithoutLeaseOrApp(t *testing.T) {
	e := newEnv(t)
	e.receive = unreachable
	e.deliver("missed", 1)
	e.receive = func(string) int { return http.StatusAccepted }
	if err := e.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), system, app); err != nil {
		t.Fatal(err)
	}
	e.run(time.Hour)
	e.process.Demote(pkgreconciler.UniversalBucket())
	if err := e.process.Reconcile(t.Context(), system+"/"+app); err == nil {
		t.Error("the key is not skipped")
	}
	if e.pages != 0 || len(e.requests) != 0 {
		t.Errorf("%d pages were read, %q requested", e.pages, e.requests)
	}
}
