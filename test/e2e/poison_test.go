// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// panicLimit is the number of panics that park an event.
const panicLimit = 5

// B16: an event whose planning panics and one whose reporting panics: the process survives, another
// event runs meanwhile; the first is parked after five attempts with a reason, a metric and one
// Kubernetes Event, the other, which has a run, waits on. No check fails. With a controller that
// does not panic the other one's check tells the truth, and the parked delivery that is delivered
// again (A6) is processed under a new record.
func TestB16Poison(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1})
	planning, poison := w.push(map[string]string{".tekton/run.yaml": pipeline("poison", "push")})
	reporting, late := w.push(map[string]string{".tekton/run.yaml": pipeline("late", "push")})
	p := w.startPoison("-panic-planning="+planning, "-panic-reporting="+reporting)
	w.claimed()
	process := p.PID()
	w.deliver(poison, http.StatusAccepted)
	w.deliver(late, http.StatusAccepted)
	w.eventually(soon, "both events have panicked", func() error {
		for _, delivery := range []delivery{poison, late} {
			if event := w.recordOf(delivery); event.Status.Panics == 0 {
				return fmt.Errorf("%s has not", event.Name)
			}
		}
		return nil
	})
	good, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("good", "push")})
	w.deliver(delivery, http.StatusAccepted)
	w.checkReaches(good, checkName("good"), "success", soon)
	w.settles(planning, soon)
	w.parked(p, poison)
	w.neverParked(p, late)
	if p.PID() != process || !p.Running() {
		t.Errorf("the controller is process %d, want it to survive as %d", p.PID(), process)
	}
	w.untold(planning)
	w.neverFailed(reporting)
	if n := w.number(p, "plumbline_gitevent_parked_total"); n != 1 {
		t.Errorf("the metric counts %v parked events, want 1", n)
	}

	w.kill(p)
	w.startController(false, "-operator-retry="+operatorRetry.String())
	w.checkReaches(reporting, checkName("late"), "success", takeover)
	if status, body, err := w.git.redeliver(w.ctx, poison.ID()); err != nil || status != http.StatusAccepted {
		t.Fatalf("a redelivery of the parked event is answered %d %s, %v", status, body, err)
	}
	w.checkReaches(planning, checkName("poison"), "success", soon)
	w.settled(afterFault)
	records := 0
	for _, event := range w.events() {
		if event.Spec.DeliveryKey == poison.ID() {
			records++
		}
	}
	if records != 2 {
		t.Errorf("the parked delivery has %d records, want a second one", records)
	}
	w.neverFailed(planning)
	w.neverFailed(reporting)
	w.started("good", "late", "poison")
	w.invariants()
}

// startPoison builds and starts a controller that panics about some commits.
func (w *world) startPoison(flags ...string) *installation.Process {
	w.t.Helper()
	dir := w.t.TempDir()
	w.must(installation.Compile(w.ctx, dir, "./test/poison"))
	flags = append([]string{"-late-reports=" + lateReports.String(), "-operator-retry=" + operatorRetry.String()}, flags...)
	p, err := w.ControllerAt(w.ctx, filepath.Join(dir, "poison"), false, flags...)
	w.must(err)
	w.start(p)
	w.controllers = append(w.controllers, p)
	return p
}

// parked requires that a delivery's event was given up, as a person and a machine can see, and that
// nothing is left of it.
func (w *world) parked(p *installation.Process, d delivery) {
	w.t.Helper()
	event := w.recordOf(d)
	if event.Status.Disposition != v1alpha1.DispositionRefused || planOf(event).Reason != "Parked" || event.Status.Panics != panicLimit {
		w.t.Errorf("the event is %s %+v after %d panics, want it parked after %d", event.Status.Disposition, planOf(event), event.Status.Panics, panicLimit)
	}
	w.eventually(soon, "the Repository has been told", func() error {
		if told := w.told(event.Name); len(told) != 1 || told["Parked"] != 1 {
			return fmt.Errorf("its Kubernetes Events about %s are %v, want one", event.Name, told)
		}
		return nil
	})
	if stacks := strings.Count(w.log(p), "poison in a commit"); stacks < panicLimit {
		w.t.Errorf("the log tells of %d panics, want %d", stacks, panicLimit)
	}
	if event.Payload != nil {
		w.t.Error("a settled event has its payload still")
	}
}

// neverParked requires that an event with a run waits on, whatever the number of panics.
func (w *world) neverParked(p *installation.Process, d delivery) {
	w.t.Helper()
	w.eventually(afterFault, "reporting was tried more often than planning", func() error {
		if n := strings.Count(w.log(p), `"panic":"poison in a report"`); n <= panicLimit {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	event := w.recordOf(d)
	if event.Settled() || event.Status.Disposition != v1alpha1.DispositionRuns || event.Status.Panics != panicLimit {
		w.t.Errorf("the event with a run is %s, settled %t, after %d panics; want it open", event.Status.Disposition, event.Settled(), event.Status.Panics)
	}
	if told := w.told(event.Name); told["Panic"] > 1 {
		w.t.Errorf("the Repository's Kubernetes Events about %s are %v, want at most one", event.Name, told)
	}
	w.credentials("False", "Panic")
}
