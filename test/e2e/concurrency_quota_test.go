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

// A quota that refuses the creation makes the run wait with its slot; the check never says
// failure. A limit of the global Repository applies to every Repository without one, and so do its
// changes (F9).
func TestQuotaRefusalKeepsSlot(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, quotaKeepsSlot)
}

func quotaKeepsSlot(t *testing.T, env *environment) {
	_, err := env.Plumbline.PipelinesascodeV1alpha1().Repositories(env.Namespace).Create(env.ctx, &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Name: "pipelines-as-code"},
	}, metav1.CreateOptions{})
	env.must(err)
	env.setLimit(env.Namespace, "pipelines-as-code", 1)
	s := env.newRunWatcher()
	env.setQuota("0")
	sha, d := env.push(map[string]string{".tekton/a.yaml": pipeline("a", "push"), ".tekton/b.yaml": pipeline("b", "push")})
	env.deliver(d, http.StatusAccepted)
	env.eventually(soon, "one waits for the quota, the other one for its slot", func() error {
		a, _ := env.currentCheck(sha, checkName("a"))
		b, _ := env.currentCheck(sha, checkName("b"))
		if !a.Tells("exceeded quota") || !b.Tells("position 1 in the queue") {
			return fmt.Errorf("%q, %q", a.Text, b.Text)
		}
		return nil
	})
	env.awaitQueue(1, 1)
	env.must(env.Kube.CoreV1().ResourceQuotas(env.ci).Delete(env.ctx, "runs", metav1.DeleteOptions{}))
	const quotaRetry = 3 * time.Minute
	env.awaitCheck(sha, checkName("b"), "success", quotaRetry)
	env.awaitAllSettled(afterFault)
	if most, _, _ := s.snapshot(); most > 1 {
		t.Errorf("%d ran at once, at most 1 may", most)
	}
	env.requireNoFailure(sha)
	env.checkGlobalLimitChanges()
}

// setQuota sets how many PipelineRuns may be in the Repository's namespace.
func (env *environment) setQuota(most string) {
	env.t.Helper()
	const count = "count/pipelineruns.tekton.dev"
	quotas := env.Kube.CoreV1().ResourceQuotas(env.ci)
	_, err := quotas.Create(env.ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "runs"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{count: resource.MustParse(most)}},
	}, metav1.CreateOptions{})
	env.must(err)
	env.eventually(soon, "the quota is known", func() error {
		quota, err := quotas.Get(env.ctx, "runs", metav1.GetOptions{})
		if err == nil && len(quota.Status.Hard) == 0 {
			err = errMissing
		}
		return err
	})
}

// checkGlobalLimitChanges has four runs wait for the one slot that the global Repository allows.
// F3: a finished run has no slot, even if its result cannot be reported. F9: a higher limit starts
// one more run, and without a limit all start.
func (env *environment) checkGlobalLimitChanges() {
	env.t.Helper()
	files := map[string]string{}
	for _, name := range []string{"c", "d", "e", "f"} {
		files[".tekton/"+name+".yaml"] = pipeline(name, "push", held)
	}
	sha := env.pushAccepted(files)
	env.awaitQueue(1, 3)
	if running, queued := env.queueColumns(); running != "1" || queued != "3" {
		env.t.Errorf("the columns say %s running, %s queued", running, queued)
	}
	env.awaitCheck(sha, checkName("c"), "in_progress", soon)
	var down []*forge.FaultHandle
	for _, at := range []operation{createCheck, updateCheck} {
		down = append(down, env.git.inject(at, forge.Fault{Do: forge.ServerError502HTML()}))
	}
	event := env.eventAt(sha)
	env.must(env.Cluster.Release(env.ctx, env.ci, runName(&event, "c")))
	env.awaitQueue(1, 2)
	env.eventually(soon, "the next one runs", func() error {
		if runs := env.runs(); !slices.Contains(namesOf(runs), runName(&event, "d")) {
			return fmt.Errorf("there are %q", namesOf(runs))
		}
		return nil
	})
	if check, _ := env.currentCheck(sha, checkName("c")); check.Status != "in_progress" {
		env.t.Errorf("the check of the first is %s %s: the test shows nothing", check.Status, check.Conclusion)
	}
	for _, fault := range down {
		fault.Remove()
	}
	env.awaitCheck(sha, checkName("c"), "success", afterFault)
	env.setLimit(env.Namespace, "pipelines-as-code", 2)
	env.awaitQueue(2, 1)
	env.setLimit(env.Namespace, "pipelines-as-code", 0)
	env.releaseRuns(env.awaitRunsCreated(sha))
	env.awaitAllSettled(afterFault)
	env.requireNoFailure(sha)
}

// queueColumns returns the slots that `kubectl get repositories` prints.
func (env *environment) queueColumns() (running, queued string) {
	env.t.Helper()
	data, err := env.Plumbline.PipelinesascodeV1alpha1().RESTClient().Get().Namespace(env.ci).Resource(
		"repositories").Name("app").
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").Do(env.ctx).Raw()
	env.must(err)
	var table metav1.Table
	env.must(json.Unmarshal(data, &table))
	cells := map[string]string{}
	for i, column := range table.ColumnDefinitions {
		cells[column.Name] = fmt.Sprint(table.Rows[0].Cells[i])
	}
	return cells["Running"], cells["Queued"]
}

// runInOtherRepository runs a pipeline of another Repository in a namespace to its end.
func (env *environment) runInOtherRepository(namespace string) {
	env.t.Helper()
	other := env.onOtherGitLab(env.t, namespace, "another")
	sha := other.pushAccepted(map[string]string{".tekton/push.yaml": pipeline("other", "push")})
	other.awaitCheck(sha, checkName("other"), "success", afterFault)
}

// The schema refuses invalid limits. F4: another Repository of the namespace does not wait. F10: a
// run that waits for a slot of a deleted Repository is cancelled, and its check gives the reason.
func TestDeletedRepositoryCancelsQueuedRuns(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1})
	for _, bad := range []string{"0", "-1"} {
		patch := []byte(`{"spec":{"concurrency_limit":` + bad + `}}`)
		if _, err := env.Plumbline.PipelinesascodeV1alpha1().Repositories(env.ci).Patch(env.ctx, "app", types.MergePatchType,
			patch, metav1.PatchOptions{}); err == nil {
			t.Errorf("the limit %s is accepted", bad)
		}
	}
	env.setLimit(env.ci, "app", 1)
	sha := env.pushAccepted(map[string]string{
		".tekton/a.yaml": pipeline("a", "push", held), ".tekton/b.yaml": pipeline("b", "push", held),
	})
	env.awaitQueue(1, 1)
	env.awaitCheck(sha, checkName("b"), "queued", soon)
	env.awaitCheck(sha, checkName("a"), "in_progress", soon)
	env.runInOtherRepository(env.ci)
	env.must(env.Plumbline.PipelinesascodeV1alpha1().Repositories(env.ci).Delete(context.WithoutCancel(env.ctx), "app",
		metav1.DeleteOptions{}))
	if check := env.awaitCheck(sha, checkName("b"), "cancelled", afterFault); !check.Tells("is gone") {
		t.Errorf("the check does not say why: %s", check.Text)
	}
	event := env.eventAt(sha)
	env.must(env.Cluster.Release(env.ctx, env.ci, runName(&event, "a")))
	env.awaitCheck(sha, checkName("a"), "success", soon)
	env.requireNoFailure(sha)
}
