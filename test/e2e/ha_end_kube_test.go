// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/webhooksecret"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// SIGTERM while the copy of a webhook secret is renewed, whose value before is still valid. The copy is the one before or the new
// one, with the value before it, and never half of it; receivers take what the value before signs all the time, and what the new
// one signs as soon as there is another controller.
func TestTerminatedWhileAWebhookSecretIsRenewed(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1, standby: true, proxied: true}, renewsWhole)
}

func renewsWhole(t *testing.T, w *world) {
	w.git.commit("main", forge.Change{Files: map[string]string{"words": "no pipelines"}})
	controller, now := w.controller(), secretPair{current: w.webhookSecret()}
	whole, shown := []secretPair{now}, w.watchCopy()
	for _, row := range []struct {
		name  string
		write cluster.Action
		lands bool
	}{
		{"lands-while-draining", cluster.Delay(signalled), true},
		{"lands-without-an-answer", cluster.ApplyThenDrop(), true},
		{"does-not-land", cluster.Drop(), false},
	} {
		next := secretPair{current: "the-webhook-secret-that-" + row.name, previous: now.current}
		var rotated atomic.Bool
		gone, renewal := w.endsAt(controller, w.renewsItsCopy(&rotated), row.write)
		rotated.Store(true) // what is read while the Secret is written may be the new value
		w.rotates(next)
		w.eventually(soon, "the renewal that "+row.name, func() error {
			w.guesses()
			if renewal.Hits() == 0 {
				return errMissing
			}
			return nil
		})
		w.alwaysTakes(now.current)
		waitFor(w, gone, "the controller ends")
		w.alwaysTakes(now.current)
		left := now
		if row.lands {
			left = next
			w.takes(next.current)
		}
		if got := pairOf(w.copied()); got != left {
			t.Errorf("the renewal that %s: the copy is %v, want %v", row.name, got, left)
		}
		controller = w.startController(true)
		w.knows(next.current, next.previous)
		w.takes(next.current)
		w.alwaysTakes(now.current)
		whole, now = append(whole, next), next
	}
	w.eventually(soon, "the last copy is seen", func() error {
		if all := shown(); len(all) == 0 || all[len(all)-1] != now {
			return errMissing
		}
		return nil
	})
	for _, copied := range shown() {
		if !slices.Contains(whole, copied) {
			t.Errorf("the receivers were shown %v, want one of %v", copied, whole)
		}
	}
	w.settled(afterFault)
}

// secretPair is what deliveries may be signed with.
type secretPair struct{ current, previous string }

func pairOf(v webhooksecret.Value) secretPair {
	return secretPair{string(v.Current), string(v.Previous)}
}

// renewsItsCopy finds the call that renews the copy of the webhook's secret after that was rotated: the next write of the Secret
// with the copy after the Secret that it is from was read.
func (w *world) renewsItsCopy(rotated *atomic.Bool) func(cluster.Call) bool {
	namespace, name, _ := w.git.secret(w)
	shard, _ := w.copyIn()
	var read atomic.Bool
	return func(c cluster.Call) bool {
		switch {
		case !forNoEvent(c):
			return false
		case c.Is("get", "secrets") && c.Namespace == namespace && c.Name == name && rotated.Load():
			read.Store(true)
		case c.Is("patch", "secrets") && c.Namespace == w.Namespace && c.Name == shard:
			return read.Load()
		}
		return false
	}
}

// watchCopy returns what receivers were ever shown of the webhook's secret from now on.
func (w *world) watchCopy() (shown func() []secretPair) {
	w.t.Helper()
	shard, id := w.copyIn()
	watch, err := w.Kube.CoreV1().Secrets(w.Namespace).Watch(w.ctx, metav1.SingleObject(metav1.ObjectMeta{Name: shard}))
	w.must(err)
	w.t.Cleanup(watch.Stop)
	var mu sync.Mutex
	var all []secretPair
	go func() {
		for event := range watch.ResultChan() {
			if secret, ok := event.Object.(*corev1.Secret); ok {
				value, _ := webhooksecret.Copy(secret.Data, id)
				mu.Lock()
				all = append(all, pairOf(value))
				mu.Unlock()
			}
		}
	}()
	return func() []secretPair {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// rotates writes both values into the Secret that the webhook's secret comes from.
func (w *world) rotates(to secretPair) {
	w.t.Helper()
	namespace, name, key := w.git.secret(w)
	patch := fmt.Sprintf(`{"stringData":{%q:%q,%q:%q}}`, key, to.current, key+webhooksecret.PreviousSuffix, to.previous)
	_, err := w.Kube.CoreV1().Secrets(namespace).Patch(w.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.must(err)
}

// signs sends a receiver a delivery that a value of the webhook's secret signs, past the service: a GitLab would disable a hook
// that is refused.
func (w *world) signs(secret string) (answered, error) {
	w.t.Helper()
	push := w.again()
	_, body := partsOf(push)
	request, err := w.git.signed(push, body, secret).Request(w.ctx, w.receivers[0].URL)
	w.must(err)
	return exchange(request)
}

// takes waits until a receiver takes what a value of the webhook's secret signs.
func (w *world) takes(secret string) {
	w.t.Helper()
	w.eventually(soon, "what "+secret+" signs is taken", func() error {
		if a, err := w.signs(secret); err != nil || a.status/100 != 2 {
			return fmt.Errorf("answered %v, %w", a, err)
		}
		return nil
	})
}

// alwaysTakes is takes for a value that was never wrong.
func (w *world) alwaysTakes(secret string) {
	w.t.Helper()
	w.eventually(soon, "what "+secret+" signs is taken", func() error {
		a, err := w.signs(secret)
		if a.status == http.StatusUnauthorized {
			w.t.Errorf("what %s signs is refused", secret)
			return nil
		}
		if err != nil || a.status/100 != 2 {
			return fmt.Errorf("answered %v, %w", a, err)
		}
		return nil
	})
}

// endsAt has a process told to end when a call arrives that match, which gets every call once, is true for; do is done with that
// one and all later ones of its kind. gone is closed when the process has ended within its grace period.
func (w *world) endsAt(p *installation.Process, match func(cluster.Call) bool, do cluster.Action) (gone <-chan struct{}, met *cluster.Armed) {
	w.t.Helper()
	ended := make(chan struct{})
	var first atomic.Pointer[cluster.Call]
	p.Proxy.OnCall(func(c cluster.Call) {
		if !match(c) || !first.CompareAndSwap(nil, &c) {
			return
		}
		_ = p.Terminate()
		go func() {
			ctx, cancel := context.WithTimeout(w.ctx, drained)
			defer cancel()
			if p.Wait(ctx) == nil {
				close(ended)
			}
		}()
	})
	return ended, p.Proxy.Add(cluster.Rule{Do: do, Match: func(c cluster.Call) bool {
		at := first.Load()
		return at != nil && nameOf(c) == nameOf(*at) && c.Namespace == at.Namespace && c.Name == at.Name
	}})
}
