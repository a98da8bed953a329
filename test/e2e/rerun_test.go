// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// E7: another run of a pipeline on the same commit is another check with its own link: on GitHub a new check run beside
// the one that is completed and stays as it is; on GitLab, which shows one status of a name, a new status in its place.
func TestE7AnotherRunIsAnotherCheck(t *testing.T) {
	t.Parallel()
	forBothServices(t, setup{receivers: 1, controllers: 1, config: [][3]string{{"plumbline", "tekton-dashboard-url", dashboard}}}, showsAnotherRun)
}

func showsAnotherRun(t *testing.T, w *world) {
	sha, first := w.push(map[string]string{".tekton/run.yaml": pipeline("twice", "push", held)})
	w.deliver(first, http.StatusAccepted)
	w.ask(runOf(w.created(sha), "twice"), pipelinev1.PipelineRunSpecStatusCancelled)
	before := w.checkReaches(sha, checkName("twice"), "cancelled", soon)
	w.settled(soon)
	second := w.again()
	w.deliver(second, http.StatusAccepted)
	now := w.checkReaches(sha, checkName("twice"), "in_progress", soon)
	run := runOf(ptr(w.recordOf(second)), "twice")
	if now.ID == before.ID || !strings.HasSuffix(now.DetailsURL, "/"+run) || now.ExternalID != run {
		t.Errorf("the check of run %s is %s, links to %s and is of %q; that of the run before is %s", run, now.ID, now.DetailsURL, now.ExternalID, before.ID)
	}
	w.release(ptr(w.recordOf(second)))
	w.checkReaches(sha, checkName("twice"), "success", soon)
	w.settled(soon)
	checks := w.git.checks(sha)
	if len(checks) != 2 {
		t.Fatalf("%d checks of two runs: %+v", len(checks), checks)
	}
	old := checks[0]
	if old.ID != before.ID || old.Conclusion != "cancelled" || old.DetailsURL != before.DetailsURL || old.Replaced != (w.git.kind() == gitLab) {
		t.Errorf("the check of the first run is %+v now and was %+v", old, before)
	}
	w.neverFailed(sha)
}

func ptr(event v1alpha1.GitEvent) *v1alpha1.GitEvent { return &event }

// E5, as far as minutes show a day: while the service answers nothing but 503 the run goes on to its end, and each
// attempt to report it comes about twice as long after the one before; when the service is back the end is reported. The
// queue's backoff has no limit of attempts and ends at 1000 s.
func TestE5ALongOutage(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, outlivesAnOutage)
}

func outlivesAnOutage(t *testing.T, w *world) {
	const attempts = 11 // after 5 ms·2ⁿ each: the last one waits 5 s
	sha, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("patient", "push", held)})
	w.deliver(delivery, http.StatusAccepted)
	w.checkReaches(sha, checkName("patient"), "in_progress", soon)
	event := w.created(sha)
	outage := w.git.inject(anything, forge.Fault{Do: forge.Answer(http.StatusServiceUnavailable, nil, "{}")})
	w.release(event)
	w.ended(event.Status.Runs[0])
	w.hit(outage, attempts)
	var asked []forge.Request
	for _, request := range w.git.log().requests {
		if request.Fault {
			asked = append(asked, request)
		}
	}
	n := len(asked) - 1
	last, before := asked[n].Time.Sub(asked[n-1].Time), asked[n-3].Time.Sub(asked[n-4].Time)
	if last < 3*before {
		t.Errorf("the last of %d calls came %v after the one before, and three calls earlier that was %v: they must get rarer", n+1, last, before)
	}
	outage.Remove()
	w.checkReaches(sha, checkName("patient"), "success", afterFault)
	w.settles(sha, afterFault)
	w.oneCheck(sha, checkName("patient"))
	w.neverFailed(sha)
}
