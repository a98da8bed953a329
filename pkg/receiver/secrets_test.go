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

// requests is the ConfigMap through which receivers request copies.
type requests struct {
	mu    sync.Mutex
	fails error
	sent  []string
	came  chan struct{}
}

//nolint:revive // client-go decides what it takes
func (r *requests) Patch(_ context.Context, name string, kind types.PatchType, data []byte, _ metav1.PatchOptions,
	_ ...string) (*corev1.ConfigMap, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var patch struct{ Data map[string]string }
	if err := json.Unmarshal(data, &patch); err != nil || name != webhooksecret.Asks || kind != types.MergePatchType {
		return nil, fmt.Errorf("%s of %s: %w", kind, name, err)
	}
	defer func() { r.came <- struct{}{} }()
	if r.fails != nil {
		return nil, r.fails
	}
	r.sent = append(r.sent, patch.Data[webhooksecret.AsksKey])
	return nil, nil
}

// refresh runs the Refresher of an env against an API server that may fail.
func (e *env) refresh(fails error) *requests {
	r := &requests{fails: fails, came: make(chan struct{}, 1000)}
	e.refresher = secrets.NewRefresher(r, e.clock, e.logger())
	stop := make(chan struct{})
	e.t.Cleanup(func() { close(stop) })
	go e.refresher.Run(stop)
	return r
}

// A delivery that was signed with a secret which is not copied yet requests the copy and waits for
// it.
func TestDeliveryWaitsForANewerCopy(t *testing.T) {
	const fresh = "the-secret-of-a-minute-ago"
	for name, before := range map[string]map[string]map[string]string{
		"the secret was rotated": {"plumbline/plumbline-github-app": {"webhook.secret": webhookSecret}},
		"there is no copy yet":   {},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			r := e.refresh(nil)
			e.copied = before
			c := e.copies()
			c.Wait = time.Minute
			h := e.replica()
			h.Secret = secrets.AppSecret{Copies: c, Namespace: systemNamespace, Name: "plumbline-github-app"}
			go func() {
				<-r.came // the controller answers the request
				for _, shard := range shards(
					map[string]map[string]string{"plumbline/plumbline-github-app": {"webhook.secret": fresh}}) {
					c.Set(shard)
				}
			}()
			d := push("k1")
			d.signature = sign(mustBody(d), []byte(fresh))
			e.check(http.StatusAccepted, e.send(h, d.request()))
			if want := webhooksecret.ID(secretKey("plumbline/plumbline-github-app", "webhook.secret")); len(r.sent) != 1 ||
				r.sent[0] != want {
				t.Errorf("requested %q, want %s", r.sent, want)
			}
			old := push("k2") // signed with the value before
			old.signature = sign(mustBody(old), []byte(webhookSecret))
			c.Wait = time.Millisecond
			e.check(http.StatusUnauthorized, e.send(h, old.request()))
		})
	}
}

// Deliveries with guessed secrets wait once, and those of one second are one request.
func TestGuessedSecretsWaitOnce(t *testing.T) {
	e := newEnv(t)
	r := e.refresh(nil)
	c := e.copies()
	h := e.replica()
	h.Secret = secrets.AppSecret{Copies: c, Namespace: systemNamespace, Name: "plumbline-github-app"}
	guess := push("k1")
	guess.signature = sign(mustBody(guess), []byte("guessed"))
	e.check(http.StatusUnauthorized, e.send(h, guess.request()))
	c.Wait = time.Hour // a delivery that waits now never ends
	for range 100 {
		e.check(http.StatusUnauthorized, e.send(h, guess.request()))
	}
	<-r.came
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.sent) != 1 || strings.Contains(r.sent[0], " ") {
		t.Errorf("requested %q, want one request of one secret", r.sent)
	}
}

// A9: while no newer copy can be requested, a delivery that does not match the secret is answered
// 503, not 401.
func TestMismatchIs503WhileNoCopyCanBeRequested(t *testing.T) {
	e := newEnv(t)
	r := e.refresh(errors.New("connection refused"))
	h := e.replica()
	right, wrong := push("k1"), push("k2")
	wrong.signature = sign(mustBody(wrong), []byte("guessed"))
	e.send(h, wrong.request()) // starts the request, whose result is not known yet
	<-r.came
	<-r.came // a failed request is sent again
	e.check(http.StatusServiceUnavailable, e.send(h, wrong.request()))
	e.check(http.StatusAccepted, e.send(h, right.request()))
	if e.counted("unavailable", "SecretNotRead") == 0 {
		t.Errorf("not counted as SecretNotRead:\n%s", e.log())
	}
}

// The copies are complete once every shard was filled, and stay complete.
func TestCopiesAreCompleteWithAllShards(t *testing.T) {
	e := newEnv(t)
	all := shards(nil)
	c := secrets.New(e.refresher, e.clock)
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
		t.Error("a recreated shard makes the receiver not ready")
	}
}
