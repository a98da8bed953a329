// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

func isCreate(c cluster.Call) bool { return c.Is("create", "pipelineruns") }

// C3: the create of a PipelineRun lands although nobody answers it: the retry meets the object, knows it as its own and
// adopts it: one run, one check.
func TestACreateThatLandedIsAdopted(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1, proxied: true}, adoptsWhatLanded)
}

func adoptsWhatLanded(t *testing.T, w *world) {
	lost := w.controller().Proxy.Add(cluster.Rule{Match: isCreate, Count: 1, Do: cluster.ApplyThenDrop()})
	sha, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("landed", "push")})
	w.deliver(delivery, http.StatusAccepted)
	w.checkReaches(sha, checkName("landed"), "success", afterFault)
	w.settles(sha, afterFault)
	w.neverFailed(sha)
	w.oneCheck(sha, checkName("landed"))
	if lost.Hits() != 1 {
		t.Errorf("%d answers were lost, want 1", lost.Hits())
	}
	creates := w.calls("create", "landed")
	if n := len(creates); n != 2 || creates[1].Status != http.StatusConflict || creates[0].Name != creates[1].Name {
		t.Errorf("creates %+v, want two of one name, the second answered 409 AlreadyExists", creates)
	}
	if runs := w.runs(); len(runs) != 1 {
		t.Errorf("%d PipelineRuns, want 1", len(runs))
	}
}

// C10: a PipelineRun of the planned name that is not ours is there first: it is not adopted, patched or deleted, the
// GitEvent and the Repository say what an operator has to do, and the check waits and does not fail. Once an operator has deleted it our
// run is created.
func TestAForeignPipelineRunIsNotAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1})
	w.startController(true, "-operator-retry="+operatorRetry.String())
	w.claimed()
	placed := make(chan struct{})
	w.controller().Proxy.Add(cluster.Rule{Match: isCreate, Count: 1, Do: cluster.Hold(placed)})
	sha, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("taken", "push")})
	w.deliver(delivery, http.StatusAccepted)
	var name string
	w.eventually(soon, "the create is held", func() error {
		creates := w.calls("create", "taken")
		if len(creates) == 0 {
			return fmt.Errorf("there was none")
		}
		name = creates[0].Name
		return nil
	})
	foreign := sample(name)
	// The look of ours and not the key: a person copied a run of another event.
	foreign.Labels = map[string]string{plumbline.InstallationLabel: w.Namespace, pipelinesascode.ManagedByLabel: pipelinesascode.ManagedBy}
	foreign.Annotations = map[string]string{plumbline.RunKeyAnnotation: w.Namespace + "/push-of-another-time/.tekton/run.yaml#0"}
	foreign, err := w.Tekton.TektonV1().PipelineRuns(w.ci).Create(w.ctx, foreign, metav1.CreateOptions{})
	w.must(err)
	close(placed)

	const reason = "ForeignPipelineRun"
	w.eventOf(sha, "the event says that an operator is needed", func(event *v1alpha1.GitEvent) error {
		condition := event.Status.GetCondition(v1alpha1.GitEventCreated)
		if condition.IsTrue() || condition.GetReason() != reason || event.Status.Runs[0].UID != "" {
			return fmt.Errorf("condition Created is %v", condition)
		}
		return nil
	})
	w.eventually(soon, "the Repository says so too", func() error {
		repository, err := w.Plumbline.PipelinesascodeV1alpha1().Repositories(w.ci).Get(w.ctx, "app", metav1.GetOptions{})
		if err != nil {
			return err
		}
		condition := repository.Status.GetCondition(pacv1alpha1.RepositoryCredentials)
		if !condition.IsFalse() || condition.Reason != reason {
			return fmt.Errorf("condition Credentials is %v", condition)
		}
		return nil
	})
	check := w.checkReaches(sha, checkName("taken"), "queued", soon)
	if !containsAll(check.Text, name, reason) {
		t.Errorf("the queued check does not say what it waits for: %s", check.Text)
	}
	w.neverFailed(sha)
	if found := w.run(name); found.UID != foreign.UID || found.Annotations[pipelinesascode.CheckRunID] != "" {
		t.Errorf("the foreign PipelineRun is %s with annotations %v, want it as it was: %s", found.UID, found.Annotations, foreign.UID)
	}
	for _, verb := range []string{"patch", "update", "delete"} {
		if calls := w.calls(verb, ""); len(calls) > 0 {
			t.Errorf("the controller tried to %s: %+v", verb, calls)
		}
	}
	if runs := w.runs(); len(runs) != 1 {
		t.Errorf("%d PipelineRuns, want only the foreign one", len(runs))
	}
	w.eventually(soon, "the create was tried again", func() error {
		if n := len(w.calls("create", "taken")); n < patchAttempts {
			return fmt.Errorf("%d attempts", n)
		}
		return nil
	})
	w.must(w.Tekton.TektonV1().PipelineRuns(w.ci).Delete(w.ctx, name, metav1.DeleteOptions{}))
	w.checkReaches(sha, checkName("taken"), "success", afterFault)
	w.neverFailed(sha)
	w.settles(sha, afterFault)
	w.oneCheck(sha, checkName("taken"))
	w.invariants()
}
