// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// S30, finding 15: a Git service that a tenant names is not called at an address inside unless the
// administrator lists it. The GitHub that the installation itself names may be anywhere.
func TestAGitServiceInsideIsNotCalled(t *testing.T) {
	t.Parallel()
	forEachKind(t, func(t *testing.T, on kind) {
		w := newWorld(t, setup{service: on, receivers: 1, controllers: 1, flags: []string{"-operator-retry=" + operatorRetry.String()},
			config: [][3]string{{"plumbline", "git-allowed-hosts", ""}}})
		w.claimed()
		sha, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("inside", "push")})
		before := len(w.git.log().requests)
		w.deliver(delivery, http.StatusAccepted)
		if on == gitLab {
			wait := w.waitsBecause(sha, "plan", "AddressRefused")
			if wait.Class != "Operator" || !strings.Contains(wait.Message, "adds 127.0.0.1 to git-allowed-hosts in the ConfigMap plumbline") {
				t.Errorf("it waits because of %s %s (%s), want what to set", wait.Class, wait.Reason, wait.Message)
			}
			w.credentials("False", "AddressRefused")
			w.untold(sha)
			if called := w.git.log().requests[before:]; len(called) != 0 {
				t.Errorf("it was called: %+v", called)
			}
			w.configure("git-allowed-hosts", "127.0.0.0/8")
		}
		w.checkReaches(sha, checkName("inside"), "success", afterFault)
		w.settles(sha, afterFault)
		w.credentials("True", "NoProblem")
		w.neverFailed(sha)
		w.ranOnce("inside")
		w.invariants()
	})
}
