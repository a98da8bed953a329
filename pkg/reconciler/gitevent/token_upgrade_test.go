// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Upgrade: a run that was planned with a secret waits for an operator; an existing run keeps the
// secret that it has.
func TestRunOfAnOlderVersionGetsNoGlobalToken(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.hook = always("create secrets", errRefused)
	_, _ = w.reconcile()
	w.hook = nil
	w.inheritSettings()
	w.kill()
	w.advance(6 * time.Minute)
	_, _ = w.reconcile()
	waits := w.event().Status.Waits
	if len(w.runs()) != 0 || w.secrets() != 2 || len(waits) != 1 || waits[0].Reason != "GlobalTokenNotShared" ||
		waits[0].Class != fault.Operator.String() {
		t.Errorf("%d runs, %d secrets, waits %+v", len(w.runs()), w.secrets(), waits)
	}
	goes := running(t)
	goes.inheritSettings()
	goes.kill()
	goes.advance(31 * time.Minute)
	before := string(goes.secret().Data["git-provider-token"])
	_, _ = goes.reconcile()
	if got := string(goes.secret().Data["git-provider-token"]); got != before || len(goes.git.tokens) != 1 {
		t.Errorf("the secret holds %s, %d tokens", got, len(goes.git.tokens))
	}
	goes.settle(corev1.ConditionTrue)
}
