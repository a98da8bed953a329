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

// hanging are Secrets of one namespace whose reads hang.
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
func (e *env) repository(namespace, name, secret string) {
	e.Helper()
	url := "https://gitlab.com/" + namespace + "/" + name
	e.add(e.repos, &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1},
		Spec: pacv1alpha1.RepositorySpec{
			URL: url, GitProvider: &pacv1alpha1.GitProvider{Type: "gitlab", Secret: &pacv1alpha1.Secret{Name: secret}},
		},
	})
	e.add(e.claims, &v1alpha1.RepositoryClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: v1alpha1.ClaimName(url)},
		Spec:       v1alpha1.RepositoryClaimSpec{URL: url, Repository: v1alpha1.ClaimOwner{Namespace: namespace, Name: name}},
	})
}

// stuck reconciles Repositories until each waits for a Secret or backs off. It returns how many
// wait for their Secrets, and a function that waits until none does.
func (e *env) stuck(keys ...string) (waiting int, wait func()) {
	e.Helper()
	var all sync.WaitGroup
	var inside atomic.Int64
	for _, key := range keys {
		all.Go(func() {
			for range 10 {
				inside.Add(1)
				requeue, after := controller.IsRequeueKey(e.process.Reconcile(context.Background(), key))
				if inside.Add(-1); !requeue || after <= 0 || after > retryFirst {
					e.Errorf("%s is requeued: %t, %v", key, requeue, after)
				}
				if after > tokenEvery {
					return
				}
				e.clock.Step(after)
			}
		})
		synctest.Wait()
	}
	return int(inside.Load()), all.Wait
}

// Repositories whose Secrets cannot be read do not count against the limits of the server.
func TestUnreadableSecretDelaysNoOtherRepository(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t)
		e.source.credentials.Kube = hanging{e.kube.CoreV1(), "hostile"}
		var keys []string
		for n := range 4 * atOnce {
			name := fmt.Sprint("app-", n)
			e.repository("hostile", name, name)
			keys = append(keys, "hostile/"+name)
		}
		inside, wait := e.stuck(keys...)
		if inside == 0 || inside > atOnce {
			t.Errorf("%d of a namespace wait for their Secrets, want %d at most", inside, atOnce)
		}
		e.run(5 * time.Second)
		if e.calls == 0 {
			t.Error("the webhook of another namespace is not read meanwhile")
		}
		began := time.Now()
		wait()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("a Secret is waited for %v", took)
		}
	})
}

// Many namespaces use one Secret whose read hangs, and take one worker.
func TestSharedSecretIsReadOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t)
		e.source.credentials.Kube = hanging{e.kube.CoreV1(), system}
		e.source.global = "pipelines-as-code"
		e.add(e.repos, &pacv1alpha1.Repository{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "pipelines-as-code"},
			Spec: pacv1alpha1.RepositorySpec{GitProvider: &pacv1alpha1.GitProvider{
				Type: "gitlab", URL: "https://gitlab.com", Secret: &pacv1alpha1.Secret{Name: "global"},
			}},
		})
		var keys []string
		for n := range 4 {
			owner := types.NamespacedName{Namespace: fmt.Sprint("team-", n), Name: "app"}
			e.repository(owner.Namespace, owner.Name, "")
			repository, err := e.source.repositories.Repositories(owner.Namespace).Get(owner.Name)
			if err != nil {
				t.Fatal(err)
			}
			repository.Spec.GitProvider.Secret = nil
			keys = append(keys, owner.String())
		}
		inside, wait := e.stuck(keys...)
		if inside != 1 {
			t.Errorf("%d wait for the Secret, want 1", inside)
		}
		wait()
	})
}
