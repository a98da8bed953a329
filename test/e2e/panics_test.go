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

// panicLimit is the number of panics after which an event is given up.
const panicLimit = 5

// B16: planning one event panics, and so does reporting another. The process survives and runs a
// third event meanwhile. The first is given up after five attempts, with a reason, a metric and
// one Kubernetes Event. The second has a run and stays unsettled. No check fails. A controller
// without the panic then reports the second correctly, and a redelivery of the first is processed
// under a new record (A6).
func TestPanickingEventIsGivenUp(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, setup{receivers: 1})
	planning, poison := env.push(map[string]string{".tekton/run.yaml": pipeline("poison", "push")})
	reporting, late := env.push(map[string]string{".tekton/run.yaml": pipeline("late", "push")})
	p := env.startPanickingController("-panic-planning="+planning, "-panic-reporting="+reporting)
	env.awaitClaimed()
	process := p.PID()
	env.deliver(poison, http.StatusAccepted)
	env.deliver(late, http.StatusAccepted)
	env.eventually(soon, "both events have panicked", func() error {
		for _, delivery := range []delivery{poison, late} {
			if event := env.recordOf(delivery); event.Status.Panics == 0 {
				return fmt.Errorf("%s has not", event.Name)
			}
		}
		return nil
	})
	good, delivery := env.push(map[string]string{".tekton/run.yaml": pipeline("good", "push")})
	env.deliver(delivery, http.StatusAccepted)
	env.awaitCheck(good, checkName("good"), "success", soon)
	env.awaitSettled(planning, soon)
	env.requireGivenUp(p, poison)
	env.requireNotGivenUp(p, late)
	if p.PID() != process || !p.Running() {
		t.Errorf("the controller is process %d, want it to survive as %d", p.PID(), process)
	}
	env.requireNothingReported(planning)
	env.requireNoFailure(reporting)
	if n := env.metric(p, "plumbline_gitevent_parked_total"); n != 1 {
		t.Errorf("the metric counts %v parked events, want 1", n)
	}

	env.kill(p)
	env.startController(false, "-operator-retry="+operatorRetry.String())
	env.awaitCheck(reporting, checkName("late"), "success", takeover)
	if status, body, err := env.git.redeliver(env.ctx, poison.ID()); err != nil || status != http.StatusAccepted {
		t.Fatalf("a redelivery of the parked event is answered %d %s, %v", status, body, err)
	}
	env.awaitCheck(planning, checkName("poison"), "success", soon)
	env.awaitAllSettled(afterFault)
	records := 0
	for _, event := range env.events() {
		if event.Spec.DeliveryKey == poison.ID() {
			records++
		}
	}
	if records != 2 {
		t.Errorf("the parked delivery has %d records, want a second one", records)
	}
	env.requireNoFailure(planning)
	env.requireNoFailure(reporting)
	env.requireOnlyStarted("good", "late", "poison")
	env.requireInvariants()
}

// startPanickingController builds and starts a controller that panics at some commits.
func (env *environment) startPanickingController(flags ...string) *installation.Process {
	env.t.Helper()
	dir := env.t.TempDir()
	env.must(installation.Compile(env.ctx, dir, "./test/poison"))
	flags = append([]string{"-late-reports=" + lateReports.String(), "-operator-retry=" + operatorRetry.String()},
		flags...)
	p, err := env.ControllerAt(env.ctx, filepath.Join(dir, "poison"), false, flags...)
	env.must(err)
	env.startProcess(p)
	env.controllers = append(env.controllers, p)
	return p
}

// requireGivenUp requires that a delivery's event was given up, that a user and a metric show it,
// and that nothing is left of it.
func (env *environment) requireGivenUp(p *installation.Process, d delivery) {
	env.t.Helper()
	event := env.recordOf(d)
	if event.Status.Disposition != v1alpha1.DispositionRefused || planOf(event).Reason != "Parked" ||
		event.Status.Panics != panicLimit {
		env.t.Errorf("the event is %s %+v after %d panics, want it parked after %d", event.Status.Disposition, planOf(event),
			event.Status.Panics, panicLimit)
	}
	env.eventually(soon, "the Repository has a Kubernetes Event", func() error {
		if reported := env.reportedReasons(event.Name); len(reported) != 1 || reported["Parked"] != 1 {
			return fmt.Errorf("its Kubernetes Events about %s are %v, want one", event.Name, reported)
		}
		return nil
	})
	if stacks := strings.Count(env.processLog(p), "poison in a commit"); stacks < panicLimit {
		env.t.Errorf("the log tells of %d panics, want %d", stacks, panicLimit)
	}
	if event.Payload != nil {
		env.t.Error("a settled event has its payload still")
	}
}

// requireNotGivenUp requires that an event with a run stays unsettled, whatever the number of
// panics.
func (env *environment) requireNotGivenUp(p *installation.Process, d delivery) {
	env.t.Helper()
	env.eventually(afterFault, "reporting was tried more often than planning", func() error {
		if n := strings.Count(env.processLog(p), `"panic":"poison in a report"`); n <= panicLimit {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	event := env.recordOf(d)
	if event.Settled() || event.Status.Disposition != v1alpha1.DispositionRuns || event.Status.Panics != panicLimit {
		env.t.Errorf("the event with a run is %s, settled %t, after %d panics; want it open", event.Status.Disposition,
			event.Settled(), event.Status.Panics)
	}
	if reported := env.reportedReasons(event.Name); reported["Panic"] > 1 {
		env.t.Errorf("the Repository's Kubernetes Events about %s are %v, want at most one", event.Name, reported)
	}
	env.awaitCredentialsCondition("False", "Panic")
}
