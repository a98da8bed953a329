// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
)

// What one push with one pipeline may cost at a Git service in an undisturbed process, from its delivery to its settled event, when
// its definitions have not changed.
//
// GitHub: pull requests of the commit 1, where .tekton is 1, the run's token 1 and its end 1, its check 2. GitLab: project and branch,
// which confirm the delivery, 2, merge requests of the commit 1, where .tekton is 1, and two reports, before each of which the statuses
// of the commit are read, 4.
func gitBudget(k kind) int {
	if k == gitLab {
		return 8
	}
	return 6
}

func TestAPushKeepsToItsBudgetOfGitCalls(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) {
		push := func() map[string]int {
			from := len(w.git.log().requests)
			sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("hello", "push")})
			w.deliver(delivery, http.StatusAccepted)
			w.checkReaches(sha, checkName("hello"), "success", soon)
			w.settled(soon)
			calls := map[string]int{}
			for _, request := range w.git.log().requests[from:] {
				calls[request.Route]++
			}
			return calls
		}
		push() // the first one reads the definitions, and mints a token of the App
		calls, sum, text := push(), 0, ""
		for _, route := range slices.Sorted(maps.Keys(calls)) {
			sum += calls[route]
			text += fmt.Sprintf("\n%3d  %s", calls[route], route)
		}
		if budget := gitBudget(w.git.kind()); sum == 0 || sum > 2*budget { // a slow cluster makes for reports that a run waits
			t.Errorf("a push with one pipeline costs %d calls, %d without disturbance:%s", sum, budget, text)
		}
	})
}
