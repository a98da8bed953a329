// SPDX-License-Identifier: Apache-2.0

package webhooksecret

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	pkgreconciler "knative.dev/pkg/reconciler"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	plumblinefake "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	copies "github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
	"github.com/plumbline-ci/plumbline/pkg/store/repositories"
)

const system = "plumbline"

// env is a controller that leads every shard.
type env struct {
	*testing.T
	r      *Reconciler
	kube   *fake.Clientset
	client *plumblinefake.Clientset
	cached cache.Indexer
	clock  *clocktesting.FakePassiveClock
	woken  map[string]time.Duration
}

func newEnv(t *testing.T, objects ...runtime.Object) *env {
	w := &env{T: t, kube: fake.NewSimpleClientset(objects...), client: plumblinefake.NewSimpleClientset(),
		woken: map[string]time.Duration{},
		clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		cached: cache.NewIndexer(cache.MetaNamespaceKeyFunc,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
	w.restart()
	return w
}

// restart starts another controller with an empty memory.
func (w *env) restart() {
	lister := listers.NewRepositoryLister(w.cached)
	r := newReconciler(w.clock)
	r.namespace, r.secrets, r.logger = system, w.kube.CoreV1(), zap.NewNop().Sugar()
	r.names = &names{repositories: lister, global: types.NamespacedName{Namespace: system, Name: "pipelines-as-code"},
		app: pacv1alpha1.SecretKey{Namespace: system, Name: "app", Key: copies.AppKey}}
	r.conditions = conditions{cached: lister, logger: r.logger, Condition: repositories.Condition{
		Type: pacv1alpha1.RepositoryWebhookSecret, Client: w.client.PipelinesascodeV1alpha1(),
		Recorder: &record.FakeRecorder{}, Namespace: system,
	}}
	r.wake = func(key types.NamespacedName, after time.Duration) { w.woken[key.Name] = after }
	if err := r.Promote(pkgreconciler.UniversalBucket(), func(pkgreconciler.Bucket, types.NamespacedName) {}); err != nil {
		w.Fatal(err)
	}
	w.r = r
}

func secret(namespace, name string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{}}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

// repository adds a Repository that names a webhook secret.
func (w *env) repository(namespace, name, secret string) {
	w.Helper()
	r := &pacv1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: pacv1alpha1.RepositorySpec{
			URL: "https://lab.example/" + namespace + "/" + name,
			GitProvider: &pacv1alpha1.GitProvider{
				Type: "gitlab", Secret: &pacv1alpha1.Secret{Name: secret}, WebhookSecret: &pacv1alpha1.Secret{Name: secret},
			},
		}}
	if _, err := w.client.PipelinesascodeV1alpha1().Repositories(namespace).Create(w.Context(), r,
		metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	if err := w.cached.Add(r); err != nil {
		w.Fatal(err)
	}
	w.r.names.changed()
}

func (w *env) remove(namespace, name string) {
	w.Helper()
	r := &pacv1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := w.cached.Delete(r); err != nil {
		w.Fatal(err)
	}
	w.r.names.changed()
}

// store creates or replaces a Secret.
func (w *env) store(s *corev1.Secret) {
	w.Helper()
	secrets := w.kube.CoreV1().Secrets(s.Namespace)
	_ = secrets.Delete(w.Context(), s.Name, metav1.DeleteOptions{}) // it need not be there
	if _, err := secrets.Create(w.Context(), s, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// reconcile reconciles every shard, and returns the reads of Secrets that are not shards.
func (w *env) reconcile() (reads []string) {
	w.Helper()
	w.kube.ClearActions()
	for shard := range copies.Shards {
		if err := w.r.Reconcile(context.Background(), w.r.key(shard).String()); err != nil {
			w.Fatal(err)
		}
	}
	return w.reads()
}

func (w *env) reads() (reads []string) {
	for _, action := range w.kube.Actions() {
		if get, ok := action.(clienttesting.GetAction); ok && action.GetVerb() == "get" {
			if _, shard := copies.ShardNumber(get.GetName()); !shard {
				reads = append(reads, get.GetNamespace()+"/"+get.GetName())
			}
		}
	}
	return reads
}

// writes counts those of shards.
func (w *env) writes() (n int) {
	for _, action := range w.kube.Actions() {
		if verb := action.GetVerb(); verb == "create" || verb == "patch" {
			n++
		}
	}
	return n
}

// fails makes reads of a Secret fail.
func (w *env) fails(name string, err error) {
	w.kube.PrependReactor("get", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.(clienttesting.GetAction).GetName() == name && err != nil, nil, err
	})
}

// copied is what a receiver has of a key: "current", "current previous", or "" for none.
func (w *env) copied(namespace, name, key string) string {
	w.Helper()
	id := copies.ID(pacv1alpha1.SecretKey{Namespace: namespace, Name: name, Key: key})
	shard, err := w.kube.CoreV1().Secrets(system).Get(w.Context(), copies.ShardName(copies.ShardOf(id)),
		metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		w.Fatal(err)
	}
	value, _ := copies.Copy(shard.Data, id)
	return strings.TrimSpace(fmt.Sprintf("%s %s", value.Current, value.Previous))
}

func (w *env) wantCopy(namespace, name, key, want string) {
	w.Helper()
	if got := w.copied(namespace, name, key); got != want {
		w.Errorf("the copy of %s/%s %s is %q, want %q", namespace, name, key, got, want)
	}
}

func (w *env) complete() bool {
	w.Helper()
	for shard := range copies.Shards {
		found, err := w.kube.CoreV1().Secrets(system).Get(w.Context(), copies.ShardName(shard), metav1.GetOptions{})
		if err != nil || !copies.Complete(found) {
			return false
		}
	}
	return true
}

// condition returns the condition; "" if there is none.
func (w *env) condition(namespace, name string) string {
	w.Helper()
	r, err := w.client.PipelinesascodeV1alpha1().Repositories(namespace).Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	if err := w.cached.Update(r); err != nil { // the informer has seen it
		w.Fatal(err)
	}
	c := r.Status.GetCondition(pacv1alpha1.RepositoryWebhookSecret)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}
