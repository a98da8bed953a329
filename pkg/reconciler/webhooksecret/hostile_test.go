// SPDX-License-Identifier: Apache-2.0

package webhooksecret

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	copies "github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
)

// The client refuses such a name, which must not look like an outage: the shard would never be
// complete, no new receiver ready, and the reads of others exhausted.
func TestInvalidSecretNamesAreMissing(t *testing.T) {
	w := newEnv(t)
	// as the real client does
	w.kube.PrependReactor("get", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		name := a.(clienttesting.GetAction).GetName()
		reasons := rest.IsValidPathSegmentName(name)
		return len(reasons) > 0, nil, fmt.Errorf("invalid resource name %q: %v", name, reasons)
	})
	names := []string{"..", ".", "a/b", "50%"}
	for n := range 3 * requestsPerSecond {
		names = append(names, fmt.Sprintf("../%d", n))
	}
	for n, name := range names {
		w.repository("hostile", fmt.Sprint("app-", n), name)
	}
	w.store(secret("team", "lab", webhook("one")))
	w.repository("team", "app", "lab")
	w.reconcile()
	if !w.complete() {
		t.Error("no receiver becomes ready because of a name")
	}
	if got := w.condition("hostile", "app-0"); got != "False SecretMissing" {
		t.Errorf("the condition is %q", got)
	}
	w.store(secret("team", "lab", webhook("two")))
	w.clock.SetTime(w.clock.Now().Add(time.Second))
	w.r.Request([]string{copies.ID(pacv1alpha1.SecretKey{Namespace: "team", Name: "lab", Key: "webhook.secret"})})
	w.reconcile()
	w.wantCopy("team", "lab", "webhook.secret", "two")
}

// The API server may never be able to read one Secret, for example because it cannot be decrypted.
// It takes no more reads than others then. A short outage of the same kind is waited for.
func TestUnreadableSecretDoesNotKeepReceiversFromBecomingReady(t *testing.T) {
	w := newEnv(t)
	w.repository("team", "app", "lab")
	w.fails("lab", apierrors.NewInternalError(fmt.Errorf("unable to transform key")))
	for range maxFailures - 1 {
		w.reconcile()
		w.clock.SetTime(w.clock.Now().Add(moreAfter))
	}
	if w.complete() {
		t.Error("complete, and a Secret could not be read for a moment only")
	}
	w.reconcile()
	if !w.complete() {
		t.Error("no receiver becomes ready because of one Secret")
	}
	w.clock.SetTime(w.clock.Now().Add(moreAfter))
	if reads := w.reconcile(); slices.Contains(reads, "team/lab") {
		t.Errorf("read %q again at once", reads)
	}
	w.clock.SetTime(w.clock.Now().Add(readEvery))
	if reads := w.reconcile(); !slices.Contains(reads, "team/lab") {
		t.Errorf("read %q, want it read again from time to time", reads)
	}
}

// A shard that is deleted, or loses copies, is filled at once, and is not complete before.
func TestDeletedShardIsFilledAtOnce(t *testing.T) {
	for name, harm := range map[string]func(w *env, shard string) error{
		"deleted": func(w *env, shard string) error {
			return w.kube.CoreV1().Secrets(system).Delete(w.Context(), shard, metav1.DeleteOptions{})
		},
		"emptied": func(w *env, shard string) error {
			found, err := w.kube.CoreV1().Secrets(system).Get(w.Context(), shard, metav1.GetOptions{})
			if err != nil {
				return err
			}
			found.Data = nil
			_, err = w.kube.CoreV1().Secrets(system).Update(w.Context(), found, metav1.UpdateOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t, secret("team", "lab", webhook("one")))
			w.repository("team", "app", "lab")
			w.reconcile()
			shard := copies.ShardName(copies.ShardOf(
				copies.ID(pacv1alpha1.SecretKey{Namespace: "team", Name: "lab", Key: "webhook.secret"})))
			if err := harm(w, shard); err != nil {
				t.Fatal(err)
			}
			w.clock.SetTime(w.clock.Now().Add(time.Second))
			var made []*corev1.Secret
			w.kube.PrependReactor("create", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
				made = append(made, a.(clienttesting.CreateAction).GetObject().(*corev1.Secret))
				return false, nil, nil
			})
			w.reconcile()
			w.wantCopy("team", "lab", "webhook.secret", "one")
			for _, s := range made {
				if copies.Complete(s) && len(s.Data) == 0 {
					t.Errorf("%s is made without its copies, and said to be complete", s.Name)
				}
			}
		})
	}
}

// A user who names ever new Secrets without copies delays no copy that a receiver requested.
func TestNewSecretsDelayNoRequest(t *testing.T) {
	w := newEnv(t)
	w.store(secret("team", "lab", webhook("one")))
	w.repository("team", "app", "lab")
	w.reconcile()
	w.store(secret("team", "lab", webhook("two")))
	for n := range 4 * firstsPerSecond {
		w.repository("hostile", fmt.Sprint("app-", n), fmt.Sprint("missing-", n))
	}
	w.r.Request([]string{copies.ID(pacv1alpha1.SecretKey{Namespace: "team", Name: "lab", Key: "webhook.secret"})})
	w.reconcile()
	w.wantCopy("team", "lab", "webhook.secret", "two")
}

// Many Repositories may name one Secret. Their conditions are written a few at a time.
func TestConditionsOfManyRepositoriesDelayNoCopy(t *testing.T) {
	w := newEnv(t, secret("team", "lab", webhook("one")))
	const many = 2*maxConditions + 10
	for n := range many {
		w.repository("hostile", fmt.Sprint("app-", n), "missing")
	}
	// A second secret of the same shard.
	shardOf := func(namespace, name string) int {
		return copies.ShardOf(copies.ID(pacv1alpha1.SecretKey{Namespace: namespace, Name: name, Key: "webhook.secret"}))
	}
	name := "lab"
	for n := 0; shardOf("team", name) != shardOf("hostile", "missing"); n++ {
		name = fmt.Sprint("lab-", n)
	}
	w.store(secret("team", name, webhook("one")))
	w.repository("team", "app", name)
	written := func() (n int) {
		for i := range many {
			if w.condition("hostile", fmt.Sprint("app-", i)) == "False SecretMissing" {
				n++
			}
		}
		return n
	}
	first := true
	w.client.PrependReactor("update", "repositories", func(clienttesting.Action) (bool, runtime.Object, error) {
		if first {
			first = false
			w.wantCopy("team", name, "webhook.secret", "one")
		}
		return false, nil, nil
	})
	for _, want := range []int{maxConditions, 2 * maxConditions, many} {
		w.reconcile()
		if got := written(); got != want {
			t.Errorf("%d conditions are written, want %d", got, want)
		}
		w.clock.SetTime(w.clock.Now().Add(moreAfter))
	}
}

// However many namespaces fill a shard, the App's secret and the global Repository's fit.
func TestShardHasRoomForOwnSecrets(t *testing.T) {
	w := newEnv(t)
	p := &pass{Reconciler: w.r, wanted: map[string]named{}, data: map[string][]byte{}}
	value := copies.Value{Current: make([]byte, copies.MaxValueBytes)}
	for i := range value.Current {
		value.Current[i] = 'x'
	}
	for n := range copies.MaxShardBytes / copies.MaxValueBytes {
		key := pacv1alpha1.SecretKey{Namespace: fmt.Sprint("team-", n%24), Name: fmt.Sprint(n), Key: "k"}
		id := copies.ID(key)
		p.wanted[id] = named{key: key}
		if p.room(p.wanted[id], value) {
			copies.Put(p.data, id, value)
		}
	}
	if !p.room(named{key: pacv1alpha1.SecretKey{Namespace: system, Name: "app", Key: copies.AppKey}}, value) {
		t.Error("no room for the App's secret")
	}
}
