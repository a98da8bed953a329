// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// A Repository is made while no controller runs: what is delivered for it is not accepted and may come again, and once
// its URL is claimed it runs once.
func TestARepositoryThatNobodyHasClaimedYet(t *testing.T) {
	t.Parallel()
	forEachKind(t, func(t *testing.T, on kind) {
		w := newWorld(t, setup{service: on, receivers: 1, gitlab: gitlab.Options{FirstPause: time.Second}})
		sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("early", "push")})
		w.deliver(delivery, http.StatusServiceUnavailable)
		if events := w.events(); len(events) != 0 {
			t.Errorf("recorded although refused: %+v", events)
		}
		w.startController(false)
		w.claimed()
		w.eventually(soon, "the delivery is taken", func() error { // the receiver hears of claim and copy a moment later
			status, body, err := w.git.redeliver(w.ctx, delivery.ID())
			if err == nil && status != http.StatusAccepted {
				err = fmt.Errorf("answered %d %s", status, body)
			}
			return err
		})
		w.checkReaches(sha, checkName("early"), "success", afterFault)
		w.onlyOne(sha)
		w.invariants()
	})
}
