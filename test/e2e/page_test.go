// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// lyingPage has the words of an admission webhook that judged the object.
const lyingPage = `<html><body>admission webhook "validation.webhook.pipeline.tekton.dev" denied the request: no</body></html>`

// K31, I-3: a proxy between the controller and the API server answers the create of a PipelineRun with a page of its own.
// Nobody judged the author's text: the check waits, whatever the page's code and words are, and the run is created once
// the proxy lets the create through.
func TestAProxysPageIsNotTheAuthorsFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1})
	w.startController(true, "-operator-retry="+operatorRetry.String())
	w.claimed()
	for name, code := range map[string]int{
		"page-400": http.StatusBadRequest, "page-403": http.StatusForbidden, "page-409": http.StatusConflict,
		"page-413": http.StatusRequestEntityTooLarge, "page-422": http.StatusUnprocessableEntity,
	} {
		proxied := w.controller().Proxy.Add(cluster.Rule{
			Match: func(c cluster.Call) bool { return isCreate(c) && strings.HasPrefix(c.Name, name) },
			Count: 3, Do: cluster.Page(code, lyingPage),
		})
		sha, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline(name, "push")})
		w.deliver(delivery, http.StatusAccepted)
		w.checkReaches(sha, checkName(name), "success", afterFault)
		w.settles(sha, afterFault)
		w.neverFailed(sha)
		w.oneCheck(sha, checkName(name))
		if n := proxied.Hits(); n != 3 {
			t.Errorf("%s: the proxy answered %d creates, want 3", name, n)
		}
	}
	w.invariants()
}
