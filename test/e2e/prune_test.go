// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
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

// keeps is the annotation of an author who wants to keep so many runs.
func keeps(written string) string { return fmt.Sprintf("%s: %q", pipelinesascode.MaxKeepRuns, written) }

// G5: no run is deleted before the Git service has accepted how it ended, nor because of one whose
// end it has not accepted. After the outage the one is left that was completed last, which was not
// created last, and the events settle.
func TestG5RunsAreKeptUntilTheyAreReported(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) {
		first := w.pushed(map[string]string{".tekton/kept.yaml": pipeline("kept", "push", keeps("1"))})
		w.settles(first, soon)
		files := map[string]string{".tekton/kept.yaml": pipeline("kept", "push", keeps("1"), held)}
		older, newer := w.pushed(files), w.pushed(files)
		last, before := w.created(older), w.created(newer)
		w.checkReaches(older, checkName("kept"), "in_progress", soon)
		w.checkReaches(newer, checkName("kept"), "in_progress", soon)
		down := w.git.inject(anything, forge.Fault{Do: forge.ServerError502HTML()})
		w.release(before)
		ended := w.ended(before.Status.Runs[0])
		w.nextSecond()
		w.release(last)
		if after := w.ended(last.Status.Runs[0]); ended.Status != "True" || after.Status != "True" {
			t.Fatalf("they ended %+v and %+v", ended, after)
		}
		w.eventually(soon, "the reports are refused", func() error {
			for _, sha := range []string{older, newer} {
				if event := w.record(sha); event.Status.Runs[0].Result == nil || len(event.Status.Waits) == 0 {
					return fmt.Errorf("%s: %+v", event.Name, event.Status)
				}
			}
			return nil
		})
		if runs := w.runs(); len(runs) != 3 {
			t.Errorf("%d PipelineRuns while their ends are not reported, want all three", len(runs))
		}
		down.Remove()
		w.settled(afterFault)
		left := namesOf(w.runs())
		if !slices.Contains(left, last.Status.Runs[0].Name) {
			t.Errorf("left are %v, want the one that was completed last, %s", left, last.Status.Runs[0].Name)
		}
		if len(left) != 1 { // the two have settled in one moment, and neither saw the other: the next event of the pipeline deletes it
			w.settles(w.pushed(map[string]string{".tekton/kept.yaml": pipeline("kept", "push", keeps("1"))}), soon)
			if left = namesOf(w.runs()); len(left) != 1 {
				t.Errorf("after the next event %v are left, want one", left)
			}
		}
		for _, sha := range []string{first, older, newer} {
			w.checkReaches(sha, checkName("kept"), "success", soon)
			w.oneCheck(sha, checkName("kept"))
			w.neverFailed(sha)
		}
	})
}

// pushed pushes files, and returns the commit once its delivery is accepted.
func (w *world) pushed(files map[string]string) string {
	w.t.Helper()
	sha, delivery := w.push(files)
	w.deliver(delivery, http.StatusAccepted)
	return sha
}

// record is the GitEvent of a commit.
func (w *world) record(sha string) *v1alpha1.GitEvent {
	w.t.Helper()
	return w.eventOf(sha, "the event is there", func(*v1alpha1.GitEvent) error { return nil })
}

func namesOf(runs []pipelinev1.PipelineRun) (names []string) {
	for _, run := range runs {
		names = append(names, run.Name)
	}
	return names
}

// G3: a delete that is refused is tried again, says nothing to the author and ends nothing but
// itself; after the outage what is not kept is gone. The deletes name the object.
func TestARefusedDeleteIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1, proxied: true})
	w.claimed()
	files := map[string]string{".tekton/kept.yaml": pipeline("kept", "push", keeps("1"))}
	w.settles(w.pushed(files), soon)
	w.settles(w.pushed(map[string]string{".tekton/kept.yaml": pipeline("kept", "push", keeps("9"))}), soon)
	refused := w.controller().Proxy.Add(cluster.Rule{
		Match: func(c cluster.Call) bool { return c.Is("delete", "pipelineruns") }, Count: 5, Do: cluster.Fault(cluster.WebhookRefused()),
	})
	sha := w.pushed(files)
	w.checkReaches(sha, checkName("kept"), "success", soon)
	w.settles(sha, afterFault)
	if runs := w.runs(); len(runs) != 1 || refused.Hits() < 5 {
		t.Errorf("%d PipelineRuns are left after %d refusals", len(runs), refused.Hits())
	}
	w.tells(w.record(sha).Name, "NotPruned", 1)
	w.neverFailed(sha)
	w.invariants()
}

// G4: the git-auth secret lives as long as its run, so that a console can start an ended one again:
// GitLab's token is in there still; one that was minted for the run is revoked and not in there any
// more. It goes with the run.
func TestASecretGoesWithItsRun(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1, private: true}, func(t *testing.T, w *world) {
		sha := w.pushed(map[string]string{".tekton/push.yaml": pipeline("hello", "push", held)})
		event := w.created(sha)
		before := w.secret(event)
		w.release(event)
		w.settles(sha, soon)
		run := w.run(event.Status.Runs[0].Name)
		secret := w.secret(event)
		if owners := secret.OwnerReferences; len(owners) != 1 || owners[0].UID != run.UID {
			t.Errorf("the owners are %+v, want the run", owners)
		}
		revoked := w.git.kind() == githubApp
		for key, data := range before.Data {
			if now, there := secret.Data[key]; !there || key != ".gitconfig" && (string(now) == string(data)) == revoked {
				t.Errorf("%s is there %v and the same %v", key, there, string(now) == string(data))
			}
		}
		w.must(w.Tekton.TektonV1().PipelineRuns(w.ci).Delete(w.ctx, run.Name, metav1.DeleteOptions{}))
		w.eventually(soon, "the secret goes", func() error {
			if _, err := w.gitAuth(event); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
	})
}
