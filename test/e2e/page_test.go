// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
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

// K11, K27: what the API server itself says of an object that it cannot take is a Status, not a page, so that it is known
// for a judgement of the author's text.
func TestTheAPIServersOwnRefusalsAreStatuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	large, invalid := sample("too-large"), sample("not-valid")
	large.Annotations = map[string]string{"large": strings.Repeat("x", 3<<20)}
	invalid.Labels = map[string]string{"team": "not a label"}
	runs := w.Tekton.TektonV1().PipelineRuns(w.ci)
	_, tooLarge := runs.Create(w.ctx, large, metav1.CreateOptions{})
	_, notValid := runs.Create(w.ctx, invalid, metav1.CreateOptions{})
	notDecoded := w.Tekton.TektonV1().RESTClient().Post().Namespace(w.ci).Resource("pipelineruns").
		SetHeader("Content-Type", "application/json").Body([]byte(`{"apiVersion":"tekton.dev/v1","kind":"PipelineRun","spec":1`)).Do(w.ctx).Error()
	for sentence, refused := range map[string]struct {
		err          error
		code         int32
		reason, says string
	}{
		"413 for one that is too large":      {tooLarge, http.StatusRequestEntityTooLarge, fault.ReasonTooLarge, "Request entity too large: limit is 3145728"},
		"422 for one that is not valid":      {notValid, http.StatusUnprocessableEntity, fault.ReasonInvalid, "metadata.labels"},
		"400 for one that cannot be decoded": {notDecoded, http.StatusBadRequest, fault.ReasonInvalid, ""},
	} {
		status, ok := refused.err.(apierrors.APIStatus)
		if !ok || status.Status().Code != refused.code || apierrors.HasStatusCause(refused.err, metav1.CauseTypeUnexpectedServerResponse) {
			t.Errorf("%s: %#v, want a Status with the code %d", sentence, refused.err, refused.code)
			continue
		}
		if f := fault.FromKube(fault.VerbCreate, refused.err); f.Class != fault.Invalid || f.Reason != refused.reason || !strings.Contains(f.Message, refused.says) {
			t.Errorf("%s: %s %s %q, want Invalid %s with %q", sentence, f.Class, f.Reason, f.Message, refused.reason, refused.says)
		}
	}
}
