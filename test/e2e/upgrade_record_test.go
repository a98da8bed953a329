// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

const upgradeData = "testdata/upgrade"

// upgradeWrite is a call by which a version changed a check at GitHub.
type upgradeWrite struct {
	Method, SHA string
	Check       string // the id from GitHub
	Body        map[string]any
}

// TestRecordForUpgrades brings events of another version into every unsettled state, kills it, and
// writes its objects to testdata/upgrade. It is no test of this version: see the README there.
func TestRecordForUpgrades(t *testing.T) {
	if os.Getenv(installation.OfEnv) == "" {
		t.Skipf("%s names no other version", installation.OfEnv)
	}
	env, commits := newUpgradeEnvironment(t)
	env.startReceiver(false)
	controller := env.startController(true)
	env.awaitClaimed()
	env.must(os.MkdirAll(upgradeData, 0o755))
	push := func(state string) string {
		d := env.git.pushed("refs/heads/" + state)
		event := v1alpha1.EventName("push", "github", recordedForge, d.ID())
		switch state {
		case upReported:
			controller.Proxy.Add(cluster.Rule{Do: cluster.Fault(cluster.EtcdTimeout()), Match: func(c cluster.Call) bool {
				return strings.HasPrefix(c.Verb, "delete") && (strings.HasPrefix(c.Name, event) || c.Resource == "secrets")
			}})
		case upMade:
			loseCreateAnswer(controller.Proxy, event)
		case upPlanned:
			controller.Proxy.Add(cluster.Rule{Do: cluster.Hold(nil), Match: createsRun(upPlanned)})
		}
		env.deliver(d, http.StatusAccepted)
		return commits[state]
	}
	env.awaitCheck(push(upSettled), checkName(upSettled), "success", soon)
	env.awaitAllSettled(soon)
	env.awaitCheck(push(upRunning), checkName(upRunning), "in_progress", soon)
	env.awaitCheck(push(upFinished), checkName(upFinished), "in_progress", soon)
	finished := env.awaitRunsCreated(commits[upFinished])
	env.awaitCheck(push(upReported), checkName(upReported), "success", soon)

	push(upMade)
	push(upPlanned)
	env.eventually(soon, "the run is made and the other one planned", func() error {
		if len(env.runsOfState(upMade)) != 1 {
			return errors.New("no run is made")
		}
		return env.hasPlan(commits[upPlanned])
	})
	env.awaitRecordedStates(commits)
	// The call times out after some seconds and the check is looked up, so this state comes last.
	posts := env.git.inject(createCheck, forge.Fault{Do: forge.ApplyThenHold(nil), Match: func(r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		return err == nil && bytes.Contains(body, []byte(upPosted))
	}})
	push(upPosted)
	env.awaitHits(posts, 1)
	env.awaitRecordedStates(commits)
	env.must(controller.Kill())

	push(upReceived)
	number := env.git.open("", upPulled, somebody)
	env.deliver(env.git.pulled(number, "opened"), http.StatusAccepted)
	env.must(env.receivers[0].Kill())
	env.releaseRuns(finished)
	env.awaitRunEnd(finished.Status.Runs[0])
	env.writeRecord()
}

func createsRun(state string) func(cluster.Call) bool {
	return func(c cluster.Call) bool { return c.Is("create", "pipelineruns") && strings.HasPrefix(c.Name, state) }
}

// loseCreateAnswer lets the creation of a run succeed and loses the answer, so that the controller
// cannot record it.
func loseCreateAnswer(proxy *cluster.Proxy, event string) {
	var made atomic.Bool
	proxy.Add(cluster.Rule{Do: cluster.Hold(nil), Match: func(c cluster.Call) bool {
		return made.Load() && (c.Resource == "pipelineruns" && strings.HasPrefix(c.Name, upMade) ||
			c.Resource == "gitevents" && c.Name == event)
	}})
	proxy.Add(cluster.Rule{Count: 1, Do: cluster.ApplyThenDrop(), Match: func(c cluster.Call) bool {
		is := createsRun(upMade)(c)
		made.Store(made.Load() || is)
		return is
	}})
}

func (env *environment) hasPlan(sha string) error {
	for _, event := range env.events() {
		if event.Spec.SHA == sha && event.Status.Plan != nil && len(event.Status.Runs) == 1 {
			return nil
		}
	}
	return errors.New("no run is planned")
}

// awaitRecordedStates waits until each event's status has its state.
func (env *environment) awaitRecordedStates(commits map[string]string) {
	env.t.Helper()
	state := map[string]string{}
	for name, sha := range commits {
		state[sha] = name
	}
	env.eventually(soon, "each event is in its state", func() (wrong error) {
		for _, event := range env.events() {
			name := state[event.Spec.SHA]
			if name == upSettled && event.Settled() {
				continue
			}
			known := len(event.Status.Runs) == 1 && event.Status.Runs[0].UID != ""
			reported := len(event.Status.Checks) == 1 && event.Status.Checks[0].ID != ""
			concluded := reported && event.Status.Checks[0].Concluded
			if event.Settled() || known == (name == upPlanned || name == upMade) || concluded != (name == upReported) ||
				name == upPosted && reported {
				wrong = errors.Join(wrong, fmt.Errorf("%s: settled: %t, the run is known: %t, the check: %t, concluded: %t", name,
					event.Settled(), known, reported, concluded))
			}
		}
		return wrong
	})
}

// writeRecord writes the objects as the API server stores them, without its own additions, and the
// writes of checks.
func (env *environment) writeRecord() {
	env.t.Helper()
	var objects bytes.Buffer
	for _, kind := range upgradeKinds() {
		for _, object := range env.ownObjects(kind) {
			object.SetManagedFields(nil)
			object.SetResourceVersion("")
			object.SetGeneration(0)
			if kind.Resource == "pipelineruns" {
				delete(object.Object, "status") // Tekton writes it
			}
			text, err := yaml.Marshal(object.Object)
			env.must(err)
			fmt.Fprintf(&objects, "---\n%s", text)
		}
	}
	env.must(os.WriteFile(filepath.Join(upgradeData, "objects.yaml"), objects.Bytes(), 0o644))
	var writes []upgradeWrite
	for _, call := range env.forge.Writes() {
		if call.Applied && call.CheckRunID != 0 {
			writes = append(writes, upgradeWrite{call.Method, call.HeadSHA, fmt.Sprint(call.CheckRunID), call.Body})
		}
	}
	text, err := json.MarshalIndent(writes, "", " ")
	env.must(err)
	env.must(os.WriteFile(filepath.Join(upgradeData, "checks.json"), append(text, '\n'), 0o644))
}
