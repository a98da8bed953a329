// SPDX-License-Identifier: Apache-2.0

package webhooksecret

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logtesting "knative.dev/pkg/logging/testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	copies "github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
)

// A controller that starts with an invalid value does not know what is served. Receivers with the
// last valid value need the copies. A namespace that is not served has none.
func TestCopiesStayWhileServeNamespacesIsInvalid(t *testing.T) {
	w := newEnv(t, secret("team", "lab", webhook("s")))
	w.repository("team", "one", "lab")
	w.reconcile()
	for _, step := range []struct{ setting, want string }{{"bad_value", "s"}, {"team", "s"}, {"!team", ""}} {
		settings := config.NewStore(logtesting.TestLogger(t))
		settings.OnConfigChanged(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: config.Name},
			Data:       map[string]string{"serve-namespaces": step.setting},
		})
		w.restart()
		w.r.serve(w.cached, settings)
		w.reconcile()
		w.wantCopy("team", "lab", "webhook.secret", step.want)
	}
}

// A Repository wakes the shards of the Secrets before and after a change. The global one wakes all.
func TestRepositoriesWakeShards(t *testing.T) {
	w := newEnv(t)
	var woken []int
	handler := w.r.names.handler(func(shard int) { woken = append(woken, shard) })
	repository := func(namespace, name, secret string) *pacv1alpha1.Repository {
		r := &pacv1alpha1.Repository{Spec: pacv1alpha1.RepositorySpec{GitProvider: &pacv1alpha1.GitProvider{
			Secret: &pacv1alpha1.Secret{Name: "x"}, WebhookSecret: &pacv1alpha1.Secret{Name: secret},
		}}}
		r.Namespace, r.Name = namespace, name
		return r
	}
	shard := func(name string) int {
		return copies.ShardOf(copies.ID(pacv1alpha1.SecretKey{Namespace: "team", Name: name, Key: "webhook.secret"}))
	}
	for what, test := range map[string]struct {
		do   func()
		want []int
	}{
		"it is new": {func() { handler.OnAdd(repository("team", "app", "a"), false) }, []int{shard("a")}},
		"it names another": {func() { handler.OnUpdate(repository("team", "app", "a"), repository("team", "app", "b")) },
			[]int{shard("a"), shard("b")}},
		"something else of it": {
			func() { handler.OnUpdate(repository("team", "app", "a"), repository("team", "app", "a")) }, nil,
		},
		"it is gone":    {func() { handler.OnDelete(repository("team", "app", "a")) }, []int{shard("a")}},
		"it names none": {func() { handler.OnAdd(&pacv1alpha1.Repository{}, false) }, nil},
		"it is the global one": {
			func() { handler.OnAdd(repository(system, "pipelines-as-code", "a"), false) }, []int{0, 1, 2, 3, 4, 5, 6, 7},
		},
	} {
		woken = nil
		test.do()
		if diff := cmp.Diff(test.want, woken); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

// Receivers that start wait for each of the eight shards.
func TestDeletedShardWithoutCopiesIsRecreated(t *testing.T) {
	w := newEnv(t)
	w.reconcile()
	for shard := range copies.Shards {
		if after := w.woken[copies.ShardName(shard)]; after <= 0 || after > readEvery {
			t.Errorf("shard %d is reconciled again after %v, want %v at most", shard, after, readEvery)
		}
	}
}
