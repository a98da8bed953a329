// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"slices"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Two installations on one cluster see all Repositories. A problem that one reports stays until
// that one has ended it. Then the other may report one, and neither writes because the other did.
func TestTwoInstallationsKeepEachOthersConditions(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL))
	look := func(installation string, waits ...v1alpha1.Wait) (wrote bool) {
		t.Helper()
		w.r.namespace, w.events = installation, []*v1alpha1.GitEvent{waiting("event", waits...)}
		w.reconcile("one/app")
		return slices.Contains(w.writes(), "update repositories/status")
	}
	step := func(what string, wrote, writes bool, condition string) {
		t.Helper()
		if wrote != writes {
			t.Errorf("%s: wrote is %v, want %v", what, wrote, writes)
		}
		w.wantCondition("one", "app", credentials, condition)
		w.restart()
	}
	step("no installation has a problem", look(systemNS), true, trueNoProblem)
	step("nor has the second", look("second"), false, trueNoProblem)
	step("the first has one", look(systemNS, operatorWait("PermissionMissing", time.Minute)), true,
		"False PermissionMissing")
	for range 3 {
		step("the second has none", look("second"), false, "False PermissionMissing")
		step("the first still has it", look(systemNS, operatorWait("PermissionMissing", time.Minute)), false,
			"False PermissionMissing")
	}
	step("the second has another one", look("second", operatorWait("SecretMissing", time.Minute)), false,
		"False PermissionMissing")
	step("the first's is over", look(systemNS), true, trueNoProblem)
	step("the second's is not", look("second", operatorWait("SecretMissing", time.Minute)), true, "False SecretMissing")
	step("the first has nothing to say", look(systemNS), false, "False SecretMissing")
	step("the second's is over", look("second"), true, trueNoProblem)
	if left := w.repository("one", "app").Status.Annotations; len(left) != 0 {
		t.Errorf("annotations %v are left", left)
	}
}

func TestGlobalRepositoryOfAnotherInstallationNeedsNoURL(t *testing.T) {
	w := newEnv(t, repo(systemNS, "pipelines-as-code", ""))
	w.reconcile(systemNS + "/pipelines-as-code")
	w.r.namespace = "second"
	w.reconcile(systemNS + "/pipelines-as-code")
	w.wantCondition(systemNS, "pipelines-as-code", urlCondition, "True Global")
}
