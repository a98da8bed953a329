// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

// The tests of this file stop a part that all worlds share: they do not run beside others.

// D1, the original report: Tekton's admission webhook is killed after a PipelineRun is created and
// before its first patch. The patch fails, is logged in the API server's words, counted, a
// condition and retried; the check goes on to show what the run does and never says failure unless
// the run fails; with the webhook back the run is patched.
func TestTheWebhookDiesAroundThePatch(t *testing.T) {
	first := map[kind]string{githubApp: "survives", gitLab: "breaks"}
	for _, on := range bothKinds() {
		for name, conclusion := range map[string]string{"survives": "success", "breaks": "failure"} {
			t.Run(name+"/"+string(on), func(t *testing.T) {
				if name != first[on] {
					onlyInTestAll(t)
				}
				w := newWorld(t, setup{service: on, receivers: 1, controllers: 1, proxied: true})
				w.claimed()
				survivesTheWebhook(w, name, conclusion)
			})
		}
	}
}

func survivesTheWebhook(w *world, name, conclusion string) {
	ends := map[string]string{"failure": fails}[conclusion]
	sha, event := w.webhookDies(name, ends)
	run := event.Status.Runs[0].Name
	// In every place where it must show, in the words that the API server also gives us.
	w.unpatched(sha, broken{name: run, reason: fault.ReasonWebhookUnavailable, words: w.refusal(run)})
	w.checkReaches(sha, checkName(name), "in_progress", soon)
	w.neverFailed(sha)
	w.must(shared.cluster.Part(cluster.TektonWebhook).Start(w.ctx))
	check, _ := w.current(sha, checkName(name))
	w.eventually(afterFault, "the run is patched", func() error { return w.carries(run, check) })
	w.neverFailed(sha)
	w.release(event)
	check = w.checkReaches(sha, checkName(name), conclusion, afterFault)
	w.settles(sha, afterFault)
	w.patched(run, check)
	w.oneCheck(sha, checkName(name))
	if conclusion == "success" {
		w.neverFailed(sha)
	}
	w.invariants()
}

// webhookDies pushes one held pipeline, kills the webhook while the proxy holds the first patch of
// its run, and lets the patch go.
func (w *world) webhookDies(name, ends string) (sha string, event *v1alpha1.GitEvent) {
	w.t.Helper()
	dead := make(chan struct{})
	first := w.controller().Proxy.Add(cluster.Rule{
		Match: func(c cluster.Call) bool { return c.Is("patch", "pipelineruns") }, Count: 1, Do: cluster.Hold(dead),
	})
	notes := []string{held}
	if ends != "" {
		notes = append(notes, ends)
	}
	sha, delivery := w.push(map[string]string{".tekton/run.yaml": onTekton(pipeline(name, "push", notes...))})
	w.deliver(delivery, http.StatusAccepted)
	event = w.created(sha)
	w.hit(first, 1)
	w.withoutWebhook()
	close(dead)
	return sha, event
}

// refusal is what the API server says to a patch of the run while the webhook is dead. A connection
// that was open when it was killed may break instead of being refused: that is asked away first.
func (w *world) refusal(run string) string {
	w.t.Helper()
	var words string
	w.eventually(soon, "the API server cannot reach the webhook", func() error {
		_, err := w.Tekton.TektonV1().PipelineRuns(w.ci).Patch(w.ctx, run, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"test":"refused"}}}`), metav1.PatchOptions{})
		if err == nil || !strings.HasSuffix(err.Error(), "connection refused") {
			return fmt.Errorf("it says: %w", err)
		}
		words = err.Error()
		return nil
	})
	if !strings.Contains(words, "failed calling webhook") {
		w.t.Fatalf("the webhook is dead but the API server says %q", words)
	}
	return words
}
