// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"testing"

	"github.com/plumbline-ci/plumbline/test/forge"
)

// I-8: as TestTerminatedWhileACheckIsPostedAndTakenOver, but the run is over and reported before the first controller's
// post lands. The event is not settled before a post can be late no more, and what landed late is closed.
func TestALatePostAfterTheEnd(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	w, first := newPair(t)
	answer := make(chan struct{})
	posts := w.git.inject(createCheck, forge.Fault{Count: 1, Do: forge.Hold(answer)})
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("late", "push")})
	w.deliver(delivery, http.StatusAccepted)
	w.must(posts.Wait(w.ctx, 1))
	w.must(first.Terminate())
	w.checkReaches(sha, checkName("late"), "success", takeover)
	close(answer)
	w.ends(first)
	w.settles(sha, takeover)
	w.endsOnce(sha, "late")
}
