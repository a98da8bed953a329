// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"knative.dev/pkg/controller"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// hanging are Secrets that are never answered, in one namespace.
type hanging struct {
	typedcorev1.SecretsGetter
	namespace string
}

type hangingIn struct{ typedcorev1.SecretInterface }

func (h hanging) Secrets(namespace string) typedcorev1.SecretInterface {
	if namespace == h.namespace {
		return hangingIn{}
	}
	return h.SecretsGetter.Secrets(namespace)
}

func (hangingIn) Get(ctx context.Context, _ string, _ metav1.GetOptions) (*corev1.Secret, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// repository adds a Repository of another namespace, which is served as well.
func (w *world) repository(namespace, name, secret string) {
	w.Helper()
	url := "https://gitlab.com/" + namespace + "/" + name
	w.add(w.repos, &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1},
		Spec: pacv1alpha1.RepositorySpec{
			URL: url, GitProvider: &pacv1alpha1.GitProvider{Type: "gitlab", Secret: &pacv1alpha1.Secret{Name: secret}},
		},
	})
	w.add(w.claims, &v1alpha1.RepositoryClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: v1alpha1.ClaimName(url)},
		Spec:       v1alpha1.RepositoryClaimSpec{URL: url, Repository: v1alpha1.ClaimOwner{Namespace: namespace, Name: name}},
	})
}

// stuck reconciles Repositories one after the other, each of which comes back as soon as it is to,
// until it waits for a Secret or for a while. It returns how many wait for theirs, and a function
// that waits until no one does.
func (w *world) stuck(keys ...string) (waiting int, wait func()) {
	w.Helper()
	var all sync.WaitGroup
	var inside atomic.Int64
	for _, key := range keys {
		all.Go(func() {
			for range 10 {
				inside.Add(1)
				requeue, after := controller.IsRequeueKey(w.process.Reconcile(context.Background(), key))
				if inside.Add(-1); !requeue || after <= 0 || after > retryFirst {
					w.Errorf("%s comes back: %t, %v", key, requeue, after)
				}
				if after > tokenEvery {
					return
				}
				w.clock.Step(after)
			}
		})
		synctest.Wait()
	}
	return int(inside.Load()), all.Wait
}

// Repositories whose Secrets cannot be read take no turn at the server: those of others are looked
// at meanwhile.
func TestSecretsThatCannotBeReadDelayNoOtherRepository(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.process.credentials.Kube = hanging{w.kube.CoreV1(), "hostile"}
		var keys []string
		for n := range 4 * atOnce {
			name := fmt.Sprint("app-", n)
			w.repository("hostile", name, name)
			keys = append(keys, "hostile/"+name)
		}
		inside, wait := w.stuck(keys...)
		if inside == 0 || inside > atOnce {
			t.Errorf("%d of a namespace wait for their Secrets, want %d at most", inside, atOnce)
		}
		w.run(5 * time.Second)
		if w.calls == 0 {
			t.Error("the webhook of another namespace is not looked at meanwhile")
		}
		began := time.Now()
		wait()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("a Secret is waited for %v", took)
		}
	})
}

// One Secret that many namespaces use is waited for once at a time: the other workers look at what
// can be read.
func TestASecretThatManyUseIsReadOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.process.credentials.Kube = hanging{w.kube.CoreV1(), system}
		w.process.global = "pipelines-as-code"
		w.add(w.repos, &pacv1alpha1.Repository{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "pipelines-as-code"},
			Spec: pacv1alpha1.RepositorySpec{GitProvider: &pacv1alpha1.GitProvider{
				Type: "gitlab", URL: "https://gitlab.com", Secret: &pacv1alpha1.Secret{Name: "global"},
			}},
		})
		var keys []string
		for n := range 4 {
			owner := types.NamespacedName{Namespace: fmt.Sprint("team-", n), Name: "app"}
			w.repository(owner.Namespace, owner.Name, "")
			w.process.cached.repository(owner).Spec.GitProvider.Secret = nil
			keys = append(keys, owner.String())
		}
		inside, wait := w.stuck(keys...)
		if inside != 1 {
			t.Errorf("%d wait for the Secret, want 1", inside)
		}
		wait()
	})
}
