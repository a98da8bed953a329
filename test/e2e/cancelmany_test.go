// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// S26: whatever the author of a pull request has written before, to close it ends its runs.
func TestAClosedPullRequestEndsItsRunsAfterManyCancellations(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	w.git.grant("dev", "write")
	number, sha := w.topic("topic")
	w.deliver(w.opened(number), http.StatusAccepted)
	w.checkReaches(sha, checkName("pr"), "in_progress", soon)
	names := []string{}
	for range 14 {
		names = append(names, strings.Repeat("<", 4080))
	}
	for _, n := range []int{4000, 4000, 4000, 2000, 1000, 500, 300} {
		names = append(names, strings.Repeat("x", n))
	}
	for n := 200; n > 0; n -= 10 {
		names = append(names, strings.Repeat("x", n))
	}
	for i, name := range names {
		w.deliver(w.commands(number, "dev", fmt.Sprintf("/cancel %s%02d", name, i)), http.StatusAccepted)
	}
	closed := w.closes(number, false)
	w.deliver(closed, http.StatusAccepted)
	w.disposed(closed, v1alpha1.DispositionCancels, "PullRequestClosed")
	w.checkReaches(sha, checkName("pr"), "cancelled", soon)
}
