// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// S30: a Git service that a tenant names is not called at an internal address unless the
// administrator lists it. The GitHub of the installation itself may be at any address.
func TestInternalGitServiceIsNotCalled(t *testing.T) {
	forEachKind(t, func(t *testing.T, on kind) {
		env := newEnvironment(t, setup{service: on, receivers: 1, controllers: 1,
			flags:  []string{"-operator-retry=" + operatorRetry.String()},
			config: [][3]string{{"plumbline", "git-allowed-hosts", ""}}})
		env.awaitClaimed()
		sha, delivery := env.push(map[string]string{".tekton/run.yaml": pipeline("inside", "push")})
		before := len(env.git.log().requests)
		env.deliver(delivery, http.StatusAccepted)
		if on == gitLab {
			wait := env.awaitWaitReason(sha, "plan", "AddressRefused")
			if wait.Class != "Operator" ||
				!strings.Contains(wait.Message, "adds 127.0.0.1 to git-allowed-hosts in Plumbline's ConfigMap") {
				t.Errorf("it waits because of %s %s (%s), want what to set", wait.Class, wait.Reason, wait.Message)
			}
			env.awaitCredentialsCondition("False", "AddressRefused")
			env.requireNothingReported(sha)
			if called := env.git.log().requests[before:]; len(called) != 0 {
				t.Errorf("it was called: %+v", called)
			}
			env.setConfig("git-allowed-hosts", "127.0.0.0/8")
		}
		env.awaitCheck(sha, checkName("inside"), "success", afterFault)
		env.awaitSettled(sha, afterFault)
		env.awaitCredentialsCondition("True", "NoProblem")
		env.requireNoFailure(sha)
		env.requireRanOnce("inside")
		env.requireInvariants()
	})
}
