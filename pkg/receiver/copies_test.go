// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
	"github.com/plumbline-ci/plumbline/pkg/receiver/secrets"
)

// asked is the ConfigMap that receivers ask through.
type asked struct {
	mu    sync.Mutex
	fails error
	asks  []string
	came  chan struct{}
}

//nolint:revive // client-go decides what it takes
func (a *asked) Patch(_ context.Context, name string, kind types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*corev1.ConfigMap, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var patch struct{ Data map[string]string }
	if err := json.Unmarshal(data, &patch); err != nil || name != webhooksecret.Asks || kind != types.MergePatchType {
		return nil, fmt.Errorf("%s of %s: %w", kind, name, err)
	}
	defer func() { a.came <- struct{}{} }()
	if a.fails != nil {
		return nil, a.fails
	}
	a.asks = append(a.asks, patch.Data[webhooksecret.AsksKey])
	return nil, nil
}

// asking runs the asks of a env against an API server that may fail.
func (w *env) asking(fails error) *asked {
	a := &asked{fails: fails, came: make(chan struct{}, 1000)}
	w.refresher = secrets.NewRefresher(a, w.clock, w.logger())
	stop := make(chan struct{})
	w.t.Cleanup(func() { close(stop) })
	go w.refresher.Run(stop)
	return a
}

// A delivery that was signed with a secret which is not copied yet waits for the copy, and asks for
// it.
func TestADeliveryWaitsForANewerCopy(t *testing.T) {
	const fresh = "the-secret-of-a-minute-ago"
	for name, before := range map[string]map[string]map[string]string{
		"the secret was rotated": {"plumbline/plumbline-github-app": {"webhook.secret": webhookSecret}},
		"there is no copy yet":   {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			a := w.asking(nil)
			w.copied = before
			c := w.copies()
			c.Wait = time.Minute
			h := w.replica()
			h.Secret = secrets.AppSecret{Copies: c, Namespace: systemNamespace, Name: "plumbline-github-app"}
			go func() {
				<-a.came // the controller answers the ask
				for _, shard := range shards(map[string]map[string]string{"plumbline/plumbline-github-app": {"webhook.secret": fresh}}) {
					c.Set(shard)
				}
			}()
			d := push("k1")
			d.signature = sign(mustBody(d), []byte(fresh))
			w.check(http.StatusAccepted, w.send(h, d.request()))
			if want := webhooksecret.ID(secretKey("plumbline/plumbline-github-app", "webhook.secret")); len(a.asks) != 1 || a.asks[0] != want {
				t.Errorf("asked for %q, want %s", a.asks, want)
			}
			old := push("k2") // what was signed with the value before
			old.signature = sign(mustBody(old), []byte(webhookSecret))
			c.Wait = time.Millisecond
			w.check(http.StatusUnauthorized, w.send(h, old.request()))
		})
	}
}

// Who guesses waits once, and every guess of a second is one ask.
func TestGuessesWaitOnce(t *testing.T) {
	w := newEnv(t)
	a := w.asking(nil)
	c := w.copies()
	h := w.replica()
	h.Secret = secrets.AppSecret{Copies: c, Namespace: systemNamespace, Name: "plumbline-github-app"}
	guess := push("k1")
	guess.signature = sign(mustBody(guess), []byte("guessed"))
	w.check(http.StatusUnauthorized, w.send(h, guess.request()))
	c.Wait = time.Hour // whoever waits now never ends
	for range 100 {
		w.check(http.StatusUnauthorized, w.send(h, guess.request()))
	}
	<-a.came
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.asks) != 1 || strings.Contains(a.asks[0], " ") {
		t.Errorf("asked %q, want one ask of one secret", a.asks)
	}
}

// A9: while nobody can be asked whether the secret has changed, a delivery that does not fit is
// answered 503, not 401.
func TestAMismatchWhileNobodyCanBeAsked(t *testing.T) {
	w := newEnv(t)
	a := w.asking(errors.New("connection refused"))
	h := w.replica()
	right, wrong := push("k1"), push("k2")
	wrong.signature = sign(mustBody(wrong), []byte("guessed"))
	w.send(h, wrong.request()) // begins to ask; how that ends is not known yet
	<-a.came
	<-a.came // what could not be sent is sent again
	w.check(http.StatusServiceUnavailable, w.send(h, wrong.request()))
	w.check(http.StatusAccepted, w.send(h, right.request()))
	if w.counted("unavailable", "SecretNotRead") == 0 {
		t.Errorf("not counted as SecretNotRead:\n%s", w.log())
	}
}

// A receiver is complete once every shard was filled, and stays so.
func TestCompleteCopies(t *testing.T) {
	w := newEnv(t)
	all := shards(nil)
	c := secrets.New(w.refresher, w.clock)
	for n, shard := range all {
		if c.Complete() {
			t.Fatalf("complete with %d of %d shards", n, len(all))
		}
		c.Set(shard)
	}
	if !c.Complete() {
		t.Error("not complete with all shards")
	}
	c.Set(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: webhooksecret.ShardName(0)}})
	if !c.Complete() {
		t.Error("a shard that is made anew takes a receiver out of service")
	}
}
