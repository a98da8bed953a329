// SPDX-License-Identifier: Apache-2.0

package webhooksecret

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	copies "github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
)

func idOf(namespace, name string) string {
	return copies.ID(pacv1alpha1.SecretKey{Namespace: namespace, Name: name, Key: "webhook.secret"})
}

// inShard returns names of Secrets whose copies are in one shard.
func inShard(shard int, namespace string, many int) (names []string) {
	for n := 0; len(names) < many; n++ {
		if name := fmt.Sprint(namespace, "-", n); copies.ShardOf(idOf(namespace, name)) == shard {
			names = append(names, name)
		}
	}
	return names
}

// hanging are Secrets, some of which are never answered.
type hanging struct {
	typedcorev1.SecretsGetter
	names []string
}

func (h hanging) Secrets(namespace string) typedcorev1.SecretInterface {
	return hangingIn{h.SecretsGetter.Secrets(namespace), h.names}
}

type hangingIn struct {
	typedcorev1.SecretInterface
	names []string
}

func (h hangingIn) Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Secret, error) {
	if slices.Contains(h.names, name) {
		<-ctx.Done()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return h.SecretInterface.Get(ctx, name, o)
}

func (h hangingIn) Create(ctx context.Context, s *corev1.Secret, o metav1.CreateOptions) (*corev1.Secret, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return h.SecretInterface.Create(ctx, s, o)
}

//nolint:revive // the interface has these arguments
func (h hangingIn) Patch(
	ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions, sub ...string,
) (*corev1.Secret, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return h.SecretInterface.Patch(ctx, name, kind, data, o, sub...)
}

// It delays neither the other copies of its shard nor the next pass.
func TestHangingReadDelaysNoOtherSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newEnv(t)
		const shard = 3
		hung := inShard(shard, "hostile", 41)
		for n, name := range hung {
			w.repository("hostile", fmt.Sprint("app-", n), name)
		}
		others := inShard(shard, "team", 5)
		for _, name := range others {
			w.store(secret("team", name, webhook("one")))
			w.repository("team", name, name)
		}
		w.r.secrets = hanging{w.r.secrets, hung}
		look := func() time.Duration {
			t.Helper()
			began := time.Now()
			if err := w.r.Reconcile(context.Background(), w.r.key(shard).String()); err != nil {
				t.Error(err)
			}
			w.clock.SetTime(w.clock.Now().Add(time.Since(began) + moreAfter))
			return time.Since(began)
		}
		for n := range 3 {
			if took := look(); took > 3*time.Second {
				t.Errorf("pass %d took %v", n+1, took)
			}
		}
		for _, name := range others {
			w.wantCopy("team", name, "webhook.secret", "one")
			w.store(secret("team", name, webhook("two")))
		}
		ids := []string{}
		for _, name := range others {
			ids = append(ids, idOf("team", name))
		}
		w.r.Request(ids)
		look()
		for _, name := range others {
			w.wantCopy("team", name, "webhook.secret", "two")
		}
	})
}

// The reads of a budget go to readable Secrets first.
func TestUnreadableSecretsTakeNoReadsFromOthers(t *testing.T) {
	w := newEnv(t)
	for _, name := range inShard(copies.ShardOf(idOf("team", "lab")), "hostile", 2*readsPerSecond) {
		w.store(secret("hostile", name, webhook("x")))
		w.repository("hostile", name, name)
	}
	w.store(secret("team", "lab", webhook("one")))
	w.repository("team", "app", "lab")
	for range 3 {
		w.reconcile()
		w.clock.SetTime(w.clock.Now().Add(moreAfter))
	}
	w.kube.PrependReactor("get", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		broken := a.GetNamespace() == "hostile"
		return broken, nil, apierrors.NewInternalError(errors.New("unable to transform key"))
	})
	w.store(secret("team", "lab", webhook("two")))
	for range readEvery / time.Second {
		w.clock.SetTime(w.clock.Now().Add(time.Second))
		w.reconcile()
	}
	w.wantCopy("team", "lab", "webhook.secret", "two")
}
