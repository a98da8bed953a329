// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

// Issue 15, item 1: a quota that refuses the create is a wait, in which the run keeps its slot; the check never says failure. A global limit
// is that of all that have none.
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
	const count = "count/pipelineruns.tekton.dev"
	quotas := w.Kube.CoreV1().ResourceQuotas(w.ci)
	_, err = quotas.Create(w.ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "runs"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{count: resource.MustParse("0")}},
	}, metav1.CreateOptions{})
	w.must(err)
	w.eventually(soon, "the quota is known", func() error {
		quota, err := quotas.Get(w.ctx, "runs", metav1.GetOptions{})
		if err == nil && len(quota.Status.Hard) == 0 {
			err = errMissing
		}
		return err
	})
	sha, d := w.push(map[string]string{".tekton/a.yaml": pipeline("a", "push"), ".tekton/b.yaml": pipeline("b", "push")})
	w.deliver(d, http.StatusAccepted)
	w.eventually(soon, "one waits for the quota, the other one for its slot", func() error {
		a, _ := w.current(sha, checkName("a"))
		b, _ := w.current(sha, checkName("b"))
		if !a.Tells("exceeded quota") || !b.Tells("place 1 in the line") {
			return fmt.Errorf("%q, %q", a.Text, b.Text)
		}
		return nil
	})
	w.queue(1, 1)
	w.must(quotas.Delete(w.ctx, "runs", metav1.DeleteOptions{}))
	const quotaRetry = 3 * time.Minute
	w.checkReaches(sha, checkName("b"), "success", quotaRetry)
	w.settled(afterFault)
	if most, _, _ := s.look(); most > 1 {
		t.Errorf("%d ran at once, at most 1 may", most)
	}
	w.neverFailed(sha)
}

// What waits for a slot in a namespace that is deleted is cancelled with the reason, and nothing waits for what is gone.
func TestALimitInADeletedNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	w.limits(w.ci, "app", 1)
	sha, d := w.push(map[string]string{".tekton/a.yaml": pipeline("a", "push", held), ".tekton/b.yaml": pipeline("b", "push", held)})
	w.deliver(d, http.StatusAccepted)
	w.checkReaches(sha, checkName("b"), "queued", soon)
	w.checkReaches(sha, checkName("a"), "in_progress", soon)
	w.must(w.Cluster.DeleteNamespace(w.ctx, w.ci))
	w.gone(namespaceLimit)
	if check := w.checkReaches(sha, checkName("b"), "cancelled", afterFault); !check.Tells("gone") && !check.Tells("deleted") && !check.Tells("terminated") {
		t.Errorf("the check does not say why: %s", check.Text)
	}
	w.checkReaches(sha, checkName("a"), "completed", afterFault)
	w.settles(sha, soon)
}

// The schema refuses limits that are none, and what waits for a slot of a Repository that is deleted is cancelled with the reason.
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
	w.must(w.Plumbline.PipelinesascodeV1alpha1().Repositories(w.ci).Delete(context.WithoutCancel(w.ctx), "app", metav1.DeleteOptions{}))
	if check := w.checkReaches(sha, checkName("b"), "cancelled", afterFault); !check.Tells("is gone") {
		t.Errorf("the check does not say why: %s", check.Text)
	}
	event := w.eventAt(sha)
	w.must(w.Cluster.Release(w.ctx, w.ci, runOf(&event, "a")))
	w.checkReaches(sha, checkName("a"), "success", soon)
	w.neverFailed(sha)
}
