// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// What was planned is what is created: between the first and the second create of three runs the hub's answer, the
// ConfigMap, the Repository and the branch change, and the three runs are those of an undisturbed event of the same
// push, whether the controller goes on, has to try again with the new settings, or is killed and starts with them.
func TestWhatWasPlannedIsCreated(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(w *world){
		"goes on":     nil,
		"tries again": func(w *world) { w.failCreates() },
		"killed":      func(w *world) { w.restart(w.controller()) },
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, shows(map[string]string{"lint": task("lint", "as planned")}))
			w := newWorld(t, setup{receivers: 1, controllers: 1, proxied: true, config: [][3]string{
				{"plumbline", "hub-url", s.URL}, {"plumbline", "remote-allowed-hosts", "127.0.0.1"}, {"plumbline", "tekton-dashboard-url", dashboard},
			}})
			w.claimed()
			sha, delivery := w.push(map[string]string{
				".tekton/a.yaml": referring("first", "push", "lint", "lint"), ".tekton/b.yaml": referring("second", "push", "lint", s.URL+"/lint"),
				".tekton/c.yaml": referring("third", "push", "own", "tasks/own.yaml"), "tasks/own.yaml": task("own", "as planned"),
			})
			w.deliver(delivery, http.StatusAccepted)
			w.settled(afterFault)
			want := w.asMade(w.recordOf(delivery))

			release := make(chan struct{})
			second := w.controller().Proxy.Add(cluster.Rule{Match: isCreate, From: 2, Count: 1, Do: cluster.Hold(release)})
			again := w.again() // another delivery of the same push: another event
			w.deliver(again, http.StatusAccepted)
			w.hit(second, 1)
			w.changeEverything(s)
			if disturb != nil {
				disturb(w)
			}
			close(release)
			w.settled(afterFault)
			if diff := cmp.Diff(want, w.asMade(w.recordOf(again))); diff != "" {
				t.Errorf("the runs of the event that was disturbed (-undisturbed +disturbed):\n%s", diff)
			}
			for _, pipeline := range []string{"first", "second", "third"} {
				w.checkReaches(sha, checkName(pipeline), "success", soon)
			}
			if runs, secrets := w.runs(), w.madeSecrets(); len(runs) != 6 || secrets != 6 {
				t.Errorf("%d PipelineRuns and %d git-auth secrets, want two times three", len(runs), secrets)
			}
			w.neverFailed(sha)
			w.invariants()
		})
	}
}

// failCreates makes the controller try the second and the third create again, in another reconcile.
func (w *world) failCreates() {
	w.t.Helper()
	held := w.calls("create", "")
	refused := w.controller().Proxy.Add(cluster.Rule{Match: isCreate, Count: 4, Do: cluster.Fault(cluster.WebhookRefused())})
	w.controller().Proxy.Cut() // the held create is never forwarded
	w.controller().Proxy.Restore()
	w.eventually(afterFault, "creates are refused and tried again", func() error {
		if refused.Hits() < 4 {
			return fmt.Errorf("%d were refused since %+v", refused.Hits(), held)
		}
		return nil
	})
}

// changeEverything changes what the plan was made from.
func (w *world) changeEverything(s *site) {
	w.t.Helper()
	s.set(shows(map[string]string{"lint": task("lint", "as it is now")}))
	settings := map[string]any{"data": map[string]string{
		"hub-url": s.URL + "/gone", "remote-allowed-hosts": "", "remote-refused-hosts": "127.0.0.1", "remote-tasks": "false",
		"tekton-dashboard-url": "https://elsewhere.example", "secret-auto-create": "false", "skip-push-event-for-pr-commits": "false",
	}}
	patch, err := json.Marshal(settings)
	w.must(err)
	_, err = w.Kube.CoreV1().ConfigMaps(w.Namespace).Patch(w.ctx, "plumbline", types.MergePatchType, patch, metav1.PatchOptions{})
	w.must(err)
	_, err = w.Plumbline.PipelinesascodeV1alpha1().Repositories(w.ci).Patch(w.ctx, "app", types.MergePatchType,
		[]byte(`{"spec":{"settings":{"pipelinerun_provenance":"default_branch"},"params":[{"name":"revision","value":"as it is now"}]}}`), metav1.PatchOptions{})
	w.must(err)
	w.git.commit("main", forge.Change{Message: "as it is now", Files: map[string]string{
		".tekton/a.yaml": forge.Deleted, ".tekton/b.yaml": pipeline("second", "pull_request"), "tasks/own.yaml": task("own", "as it is now"),
	}})
}

// asMade are the runs of an event as they were made, by pipeline, without what must differ between two events.
func (w *world) asMade(event v1alpha1.GitEvent) map[string]string {
	w.t.Helper()
	made := map[string]string{}
	for _, planned := range event.Status.Runs {
		run := w.run(planned.Name)
		for _, added := range []map[string]string{run.Labels, run.Annotations} {
			delete(added, pipelinesascode.CheckRunID)
		}
		data, err := json.MarshalIndent([]any{run.Labels, run.Annotations, run.Spec}, "", " ")
		w.must(err)
		secret := run.Annotations[pipelinesascode.GitAuthSecret]
		own := strings.NewReplacer(planned.Name, "RUN", event.Name, "EVENT", event.Spec.DeliveryKey, "DELIVERY", secret, "SECRET")
		made[planned.Pipeline] = own.Replace(string(data))
	}
	if len(made) != 3 {
		w.t.Fatalf("%d runs are planned, want 3: %+v", len(made), event.Status)
	}
	return made
}

// madeSecrets is how many secrets the controller has created.
func (w *world) madeSecrets() int {
	n := 0
	for _, call := range w.controller().Proxy.Calls() {
		if call.Is("create", "secrets") && call.Status == http.StatusCreated {
			n++
		}
	}
	return n
}
