// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"testing"

	"github.com/plumbline-ci/plumbline/test/installation"
)

// A10: a push of 20 MB that cannot be compressed is recorded and runs. The receiver and the
// controller run below the memory limits of their containers in config/.
func TestLargePushFitsMemoryLimits(t *testing.T) {
	onlyInTestAll(t)
	const size = 20_000_000
	forEachService(t, setup{receivers: 1, controllers: 1, limited: true}, func(t *testing.T, env *environment) {
		receiver, controller := env.receivers[0], env.controller()
		processes := []int{receiver.PID(), controller.PID()}
		sha, delivery := env.push(map[string]string{".tekton/push.yaml": pipeline("large", "push")})
		env.deliver(env.padBody(delivery, size), http.StatusAccepted)
		env.awaitCheck(sha, checkName("large"), "success", afterFault)
		env.awaitAllSettled(afterFault)
		if events, payloads := env.countStored(); events != 1 || payloads != 0 {
			t.Errorf("%d GitEvents and %d EventPayloads are stored, want one settled GitEvent", events, payloads)
		}
		for i, p := range []*installation.Process{receiver, controller} {
			if !p.Running() || p.PID() != processes[i] {
				t.Errorf("%s has ended", p.Name())
			}
			peak, err := p.Memory(installation.Peak)
			env.must(err)
			t.Logf("%s used at most %d MiB of %d", p.Name(), peak>>20, p.Limit.Bytes>>20)
		}
	})
}
