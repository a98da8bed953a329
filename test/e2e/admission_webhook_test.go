// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

// The tests of this file stop a part that all environments share, so they do not run in parallel.

// D1: Tekton's admission webhook is killed after a PipelineRun is created and before its first
// patch. The patch fails. It is logged in the API server's words, counted, shown in a condition
// and retried. The check goes on to show the run's state and says failure only if the run fails.
// With the webhook back the run is patched.
func TestWebhookDiesBeforePatch(t *testing.T) {
	first := map[kind]string{githubApp: "survives", gitLab: "breaks"}
	for _, on := range bothKinds() {
		for name, conclusion := range map[string]string{"survives": "success", "breaks": "failure"} {
			t.Run(name+"/"+string(on), func(t *testing.T) {
				if name != first[on] {
					onlyInTestAll(t)
				}
				env := newClaimedEnvironment(t, setup{service: on, receivers: 1, controllers: 1, proxied: true})
				reportsWithoutWebhook(env, name, conclusion)
			})
		}
	}
}

func reportsWithoutWebhook(env *environment, name, conclusion string) {
	ends := map[string]string{"failure": fails}[conclusion]
	sha, event := env.killWebhookAtPatch(name, ends)
	run := event.Status.Runs[0].Name
	// The failure shows everywhere, in the words of the API server's answer to us.
	env.requirePatchFailureShown(sha,
		brokenPatch{name: run, reason: fault.ReasonWebhookUnavailable, words: env.webhookRefusal(run)})
	env.awaitCheck(sha, checkName(name), "in_progress", soon)
	env.requireNoFailure(sha)
	env.must(shared.cluster.Part(cluster.TektonWebhook).Start(env.ctx))
	check, _ := env.currentCheck(sha, checkName(name))
	env.eventually(afterFault, "the run is patched", func() error { return env.hasCheckID(run, check) })
	env.requireNoFailure(sha)
	env.releaseRuns(event)
	check = env.awaitCheck(sha, checkName(name), conclusion, afterFault)
	env.awaitSettled(sha, afterFault)
	env.requirePatched(run, check)
	env.requireOneCheck(sha, checkName(name))
	if conclusion == "success" {
		env.requireNoFailure(sha)
	}
	env.requireInvariants()
}

// killWebhookAtPatch pushes one held pipeline, kills the webhook while the proxy holds the first
// patch of its run, and lets the patch go.
func (env *environment) killWebhookAtPatch(name, ends string) (sha string, event *v1alpha1.GitEvent) {
	env.t.Helper()
	dead := make(chan struct{})
	first := env.controller().Proxy.Add(cluster.Rule{
		Match: func(c cluster.Call) bool { return c.Is("patch", "pipelineruns") }, Count: 1, Do: cluster.Hold(dead),
	})
	notes := []string{held}
	if ends != "" {
		notes = append(notes, ends)
	}
	sha = env.pushAccepted(map[string]string{".tekton/run.yaml": onTekton(pipeline(name, "push", notes...))})
	event = env.awaitRunsCreated(sha)
	env.awaitHits(first, 1)
	env.stopWebhook()
	close(dead)
	return sha, event
}

// webhookRefusal returns the API server's answer to a patch of the run while the webhook is dead.
// A connection that was open when it was killed may break instead of being refused: one patch
// before uses it up.
func (env *environment) webhookRefusal(run string) string {
	env.t.Helper()
	var words string
	env.eventually(soon, "the API server cannot reach the webhook", func() error {
		_, err := env.Tekton.TektonV1().PipelineRuns(env.ci).Patch(env.ctx, run, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"test":"refused"}}}`), metav1.PatchOptions{})
		if err == nil || !strings.HasSuffix(err.Error(), "connection refused") {
			return fmt.Errorf("it says: %w", err)
		}
		words = err.Error()
		return nil
	})
	if !strings.Contains(words, "failed calling webhook") {
		env.t.Fatalf("the webhook is dead but the API server says %q", words)
	}
	return words
}
