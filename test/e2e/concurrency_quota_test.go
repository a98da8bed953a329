// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// Issue 15, item 1: a quota that refuses the create is a wait, in which the run keeps its slot; the
// check never says failure. A global limit is that of all that have none, and so are its changes
// (F9).
func TestAQuotaKeepsTheSlot(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, keepsTheSlot)
}

func keepsTheSlot(t *testing.T, w *world) {
	_, err := w.Plumbline.PipelinesascodeV1alpha1().Repositories(w.Namespace).Create(w.ctx, &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Name: "pipelines-as-code"},
	}, metav1.CreateOptions{})
	w.must(err)
	w.limits(w.Namespace, "pipelines-as-code", 1)
	s := w.watchesRuns()
	w.quota("0")
	sha, d := w.push(map[string]string{".tekton/a.yaml": pipeline("a", "push"), ".tekton/b.yaml": pipeline("b", "push")})
	w.deliver(d, http.StatusAccepted)
	w.eventually(soon, "one waits for the quota, the other one for its slot", func() error {
		a, _ := w.current(sha, checkName("a"))
		b, _ := w.current(sha, checkName("b"))
		if !a.Tells("exceeded quota") || !b.Tells("place 1 in the queue") {
			return fmt.Errorf("%q, %q", a.Text, b.Text)
		}
		return nil
	})
	w.queue(1, 1)
	w.must(w.Kube.CoreV1().ResourceQuotas(w.ci).Delete(w.ctx, "runs", metav1.DeleteOptions{}))
	const quotaRetry = 3 * time.Minute
	w.checkReaches(sha, checkName("b"), "success", quotaRetry)
	w.settled(afterFault)
	if most, _, _ := s.look(); most > 1 {
		t.Errorf("%d ran at once, at most 1 may", most)
	}
	w.neverFailed(sha)
	w.globalLimitChanges()
}

// quota sets how many PipelineRuns may be in the Repository's namespace.
func (w *world) quota(most string) {
	w.t.Helper()
	const count = "count/pipelineruns.tekton.dev"
	quotas := w.Kube.CoreV1().ResourceQuotas(w.ci)
	_, err := quotas.Create(w.ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "runs"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{count: resource.MustParse(most)}},
	}, metav1.CreateOptions{})
	w.must(err)
	w.eventually(soon, "the quota is known", func() error {
		quota, err := quotas.Get(w.ctx, "runs", metav1.GetOptions{})
		if err == nil && len(quota.Status.Hard) == 0 {
			err = errMissing
		}
		return err
	})
}

// globalLimitChanges has four runs wait for the one slot that the global Repository allows. F3: a
// run that is over has none, although its end cannot be reported. F9: a higher limit starts one
// more, and without one all start.
func (w *world) globalLimitChanges() {
	w.t.Helper()
	files := map[string]string{}
	for _, name := range []string{"c", "d", "e", "f"} {
		files[".tekton/"+name+".yaml"] = pipeline(name, "push", held)
	}
	sha := w.pushed(files)
	w.queue(1, 3)
	if running, queued := w.columns(); running != "1" || queued != "3" {
		w.t.Errorf("the columns say %s running, %s queued", running, queued)
	}
	w.checkReaches(sha, checkName("c"), "in_progress", soon)
	var down []*forge.FaultHandle
	for _, at := range []operation{createCheck, updateCheck} {
		down = append(down, w.git.inject(at, forge.Fault{Do: forge.ServerError502HTML()}))
	}
	event := w.eventAt(sha)
	w.must(w.Cluster.Release(w.ctx, w.ci, runOf(&event, "c")))
	w.queue(1, 2)
	w.eventually(soon, "the next one runs", func() error {
		if runs := w.runs(); !slices.Contains(namesOf(runs), runOf(&event, "d")) {
			return fmt.Errorf("there are %q", namesOf(runs))
		}
		return nil
	})
	if check, _ := w.current(sha, checkName("c")); check.Status != "in_progress" {
		w.t.Errorf("the check of the first is %s %s: the test shows nothing", check.Status, check.Conclusion)
	}
	for _, fault := range down {
		fault.Remove()
	}
	w.checkReaches(sha, checkName("c"), "success", afterFault)
	w.limits(w.Namespace, "pipelines-as-code", 2)
	w.queue(2, 1)
	w.limits(w.Namespace, "pipelines-as-code", 0)
	w.release(w.created(sha))
	w.settled(afterFault)
	w.neverFailed(sha)
}

// columns are what `kubectl get repositories` prints of the slots.
func (w *world) columns() (running, queued string) {
	w.t.Helper()
	data, err := w.Plumbline.PipelinesascodeV1alpha1().RESTClient().Get().Namespace(w.ci).Resource("repositories").Name("app").
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").Do(w.ctx).Raw()
	w.must(err)
	var table metav1.Table
	w.must(json.Unmarshal(data, &table))
	cells := map[string]string{}
	for i, column := range table.ColumnDefinitions {
		cells[column.Name] = fmt.Sprint(table.Rows[0].Cells[i])
	}
	return cells["Running"], cells["Queued"]
}

// another has another Repository of a namespace run something to its end.
func (w *world) another(namespace string) {
	w.t.Helper()
	other := w.elsewhere(w.t, namespace, "another")
	sha := other.pushed(map[string]string{".tekton/push.yaml": pipeline("other", "push")})
	other.checkReaches(sha, checkName("other"), "success", afterFault)
}

// The schema refuses limits that are none. F4: another Repository of the namespace does not wait.
// F10: what waits for a slot of a Repository that is deleted is cancelled with the reason.
func TestALimitOfADeletedRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	for _, bad := range []string{"0", "-1"} {
		patch := []byte(`{"spec":{"concurrency_limit":` + bad + `}}`)
		if _, err := w.Plumbline.PipelinesascodeV1alpha1().Repositories(w.ci).Patch(w.ctx, "app", types.MergePatchType, patch, metav1.PatchOptions{}); err == nil {
			t.Errorf("the limit %s is accepted", bad)
		}
	}
	w.limits(w.ci, "app", 1)
	sha, d := w.push(map[string]string{".tekton/a.yaml": pipeline("a", "push", held), ".tekton/b.yaml": pipeline("b", "push", held)})
	w.deliver(d, http.StatusAccepted)
	w.queue(1, 1)
	w.checkReaches(sha, checkName("b"), "queued", soon)
	w.checkReaches(sha, checkName("a"), "in_progress", soon)
	w.another(w.ci)
	w.must(w.Plumbline.PipelinesascodeV1alpha1().Repositories(w.ci).Delete(context.WithoutCancel(w.ctx), "app", metav1.DeleteOptions{}))
	if check := w.checkReaches(sha, checkName("b"), "cancelled", afterFault); !check.Tells("is gone") {
		t.Errorf("the check does not say why: %s", check.Text)
	}
	event := w.eventAt(sha)
	w.must(w.Cluster.Release(w.ctx, w.ci, runOf(&event, "a")))
	w.checkReaches(sha, checkName("a"), "success", soon)
	w.neverFailed(sha)
}
