// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// keepRuns returns the annotation with which an author keeps so many runs.
func keepRuns(written string) string {
	return fmt.Sprintf("%s: %q", pipelinesascode.MaxKeepRuns, written)
}

// G5: no run is deleted before the Git service has accepted its result, nor because of a run whose
// result is not accepted yet. After the outage the run that completed last stays, which is not the
// one created last, and the events settle.
func TestRunsAreKeptUntilReported(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, env *environment) {
		first := env.pushAccepted(map[string]string{".tekton/kept.yaml": pipeline("kept", "push", keepRuns("1"))})
		env.awaitSettled(first, soon)
		files := map[string]string{".tekton/kept.yaml": pipeline("kept", "push", keepRuns("1"), held)}
		older, newer := env.pushAccepted(files), env.pushAccepted(files)
		last, before := env.awaitRunsCreated(older), env.awaitRunsCreated(newer)
		env.awaitCheck(older, checkName("kept"), "in_progress", soon)
		env.awaitCheck(newer, checkName("kept"), "in_progress", soon)
		down := env.git.inject(anything, forge.Fault{Do: forge.ServerError502HTML()})
		env.releaseRuns(before)
		ended := env.awaitRunEnd(before.Status.Runs[0])
		env.waitForNextSecond()
		env.releaseRuns(last)
		if after := env.awaitRunEnd(last.Status.Runs[0]); ended.Status != "True" || after.Status != "True" {
			t.Fatalf("they ended %+v and %+v", ended, after)
		}
		env.eventually(soon, "the reports are refused", func() error {
			for _, sha := range []string{older, newer} {
				if event := env.record(sha); event.Status.Runs[0].Result == nil || len(event.Status.Waits) == 0 {
					return fmt.Errorf("%s: %+v", event.Name, event.Status)
				}
			}
			return nil
		})
		env.requireRunCount(3)
		down.Remove()
		env.awaitAllSettled(afterFault)
		left := namesOf(env.runs())
		if !slices.Contains(left, last.Status.Runs[0].Name) {
			t.Errorf("left are %v, want the one that was completed last, %s", left, last.Status.Runs[0].Name)
		}
		// both settled at the same time and neither saw the other: the next event of the pipeline
		// deletes one
		if len(left) != 1 {
			env.awaitSettled(env.pushAccepted(map[string]string{".tekton/kept.yaml": pipeline("kept", "push", keepRuns("1"))}),
				soon)
			if left = namesOf(env.runs()); len(left) != 1 {
				t.Errorf("after the next event %v are left, want one", left)
			}
		}
		for _, sha := range []string{first, older, newer} {
			env.awaitCheck(sha, checkName("kept"), "success", soon)
			env.requireOneCheck(sha, checkName("kept"))
			env.requireNoFailure(sha)
		}
	})
}

// record is the GitEvent of a commit.
func (env *environment) record(sha string) *v1alpha1.GitEvent {
	env.t.Helper()
	return env.awaitEvent(sha, "the event is there", func(*v1alpha1.GitEvent) error { return nil })
}

func namesOf(runs []pipelinev1.PipelineRun) (names []string) {
	for _, run := range runs {
		names = append(names, run.Name)
	}
	return names
}

// G3: a refused delete is retried and has no effect on checks or other deletes. After the outage
// the runs beyond the limit are gone. The deletes name the object's UID.
func TestRefusedDeleteIsRetried(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1, proxied: true})
	files := map[string]string{".tekton/kept.yaml": pipeline("kept", "push", keepRuns("1"))}
	env.awaitSettled(env.pushAccepted(files), soon)
	env.awaitSettled(env.pushAccepted(map[string]string{".tekton/kept.yaml": pipeline("kept", "push", keepRuns("9"))}),
		soon)
	refused := env.controller().Proxy.Add(cluster.Rule{
		Match: func(c cluster.Call) bool { return c.Is("delete", "pipelineruns") }, Count: 5,
		Do: cluster.Fault(cluster.WebhookRefused()),
	})
	sha := env.pushAccepted(files)
	env.awaitCheck(sha, checkName("kept"), "success", soon)
	env.awaitSettled(sha, afterFault)
	if runs := env.runs(); len(runs) != 1 || refused.Hits() < 5 {
		t.Errorf("%d PipelineRuns are left after %d refusals", len(runs), refused.Hits())
	}
	env.awaitReported(env.record(sha).Name, "NotPruned", 1)
	env.requireNoFailure(sha)
	env.requireInvariants()
}

// G4: the git-auth secret lives as long as its run, so that a console can start a finished run
// again. GitLab's token stays in it; a token that was minted for the run is revoked and removed.
// The secret is deleted with its run.
func TestSecretIsDeletedWithRun(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1, private: true}, func(t *testing.T, env *environment) {
		sha := env.pushAccepted(map[string]string{".tekton/push.yaml": pipeline("hello", "push", held)})
		event := env.awaitRunsCreated(sha)
		before := env.gitAuthSecret(event)
		env.releaseRuns(event)
		env.awaitSettled(sha, soon)
		run := env.getRun(event.Status.Runs[0].Name)
		secret := env.gitAuthSecret(event)
		if owners := secret.OwnerReferences; len(owners) != 1 || owners[0].UID != run.UID {
			t.Errorf("the owners are %+v, want the run", owners)
		}
		revoked := env.git.kind() == githubApp
		for key, data := range before.Data {
			if now, there := secret.Data[key]; !there || key != ".gitconfig" && (string(now) == string(data)) == revoked {
				t.Errorf("%s is there %v and the same %v", key, there, string(now) == string(data))
			}
		}
		env.must(env.Tekton.TektonV1().PipelineRuns(env.ci).Delete(env.ctx, run.Name, metav1.DeleteOptions{}))
		env.eventually(soon, "the secret goes", func() error {
			if _, err := env.getGitAuth(event); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
	})
}
