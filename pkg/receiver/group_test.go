// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/receiver"
	"github.com/plumbline-ci/plumbline/pkg/receiver/secrets"
)

// slowBody takes an hour to arrive.
type slowBody struct {
	io.ReadCloser
	env *env
}

func (b slowBody) Read(p []byte) (int, error) {
	b.env.clock.SetTime(b.env.clock.Now().Add(time.Hour))
	return b.ReadCloser.Read(p)
}

// S34: an unverified sender whose body arrives slowly does not get the answer sooner after it.
// Otherwise the time would show what was looked up.
func TestS34DelayStartsAfterTheBody(t *testing.T) {
	const late = 300 * time.Millisecond
	e := webhookEnv(t)
	h := e.both().AnswerUnverifiedAfter(late)
	request := webhookPush("guessed").request()
	request.Body = slowBody{request.Body, e}
	begin := time.Now()
	e.check(http.StatusUnauthorized, e.send(h, request))
	if took := time.Since(begin); took < late {
		t.Errorf("answered %v after the body was there, want not before %v", took, late)
	}
}

// neighbour is a Repository of the same group with a webhook secret of its own.
func (e *env) neighbour(namespace, name, value string) {
	e.t.Helper()
	r := repository(namespace, name, "https://lab.example/acme/"+namespace+"-"+name)
	r.Spec.GitProvider = &pacv1alpha1.GitProvider{
		Type: "own", Secret: &pacv1alpha1.Secret{Name: name}, WebhookSecret: &pacv1alpha1.Secret{Name: name},
	}
	e.replace(r)
	if value != "" {
		e.store(namespace, name, map[string]string{"webhook.secret": value})
	}
}

// A group's webhook is answered 200 for projects that are not onboarded, however many Repositories
// of the group one tenant has, and however many namespaces the others are in.
func TestNoNamespaceDisplacesGroupSecrets(t *testing.T) {
	e := webhookEnv(t)
	for n := range 100 {
		e.neighbour("a-tenant", fmt.Sprintf("fake-%03d", n), "made up")
	}
	for n := range 20 {
		e.neighbour(fmt.Sprintf("a-team-%02d", n), "app", fmt.Sprint("of team ", n))
	}
	d := webhookPush(repositorySecret)
	d.message.URL = unknownURL
	e.check(http.StatusOK, e.send(e.both(), d.signed(repositorySecret).request()))
}

// A missing secret of a neighbour is not waited for. It would delay the group's deliveries by 2 s
// each, and show unverified senders that a project of the group is onboarded.
func TestMissingGroupSecretIsNotWaitedFor(t *testing.T) {
	e := webhookEnv(t)
	r := e.refresh(nil)
	for n := range 5 {
		e.neighbour("a-tenant", fmt.Sprint("missing-", n), "")
	}
	h := e.both()
	c := e.copies()
	c.Wait = time.Hour // a delivery that waits never ends
	h.Services = receiver.Services{Global: receiver.GlobalOf(e.cached, receiver.LiveView(e.client, systemNamespace, 0),
		systemNamespace, "global"), Copies: c}
	d := webhookPush(repositorySecret)
	d.message.URL = unknownURL
	e.check(http.StatusOK, e.send(h, d.signed(repositorySecret).request()))
	if len(r.came) != 0 {
		t.Errorf("requested %q", r.sent)
	}
}

// While a controller fills a deleted shard again, the secrets that it had are still used.
func TestDeletedShardKeepsItsSecrets(t *testing.T) {
	const name = "plumbline/plumbline-github-app"
	e := newEnv(t)
	c := e.copies()
	h := e.replica()
	h.Secret = secrets.AppSecret{Copies: c, Namespace: systemNamespace, Name: "plumbline-github-app"}
	e.check(http.StatusAccepted, e.send(h, push("k1").request()))
	for _, shard := range shards(nil) {
		shard.Annotations = nil
		c.Set(shard)
	}
	e.check(http.StatusAccepted, e.send(h, push("k2").request()))
	for _, shard := range shards(map[string]map[string]string{name: {"webhook.secret": "another"}}) {
		c.Set(shard)
	}
	e.check(http.StatusUnauthorized, e.send(h, push("k3").request()))
}

// Deliveries for Repositories whose Secrets are missing do not prevent the App's deliveries from
// waiting for a rotated secret.
func TestMissingSecretsDoNotBlockARotation(t *testing.T) {
	const fresh = "the-secret-of-a-moment-ago"
	e := newEnv(t)
	c := e.copies()
	c.Wait = time.Minute
	ctx, stop := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	defer busy.Wait()
	defer stop()
	for n := range 100 {
		busy.Go(func() { _, _ = c.Secret(ctx, secretKey(fmt.Sprint("a-tenant/missing-", n), "webhook.secret")) })
	}
	const limit = 12
	until(t, "as many as may wait do", func() bool { return c.Waiting() >= limit })
	h := e.replica()
	h.Secret = secrets.AppSecret{Copies: c, Namespace: systemNamespace, Name: "plumbline-github-app"}
	busy.Go(func() {
		until(t, "the delivery waits as well", func() bool { return c.Waiting() > limit })
		for _, shard := range shards(
			map[string]map[string]string{"plumbline/plumbline-github-app": {"webhook.secret": fresh}}) {
			c.Set(shard)
		}
	})
	d := push("k1")
	d.signature = sign(mustBody(d), []byte(fresh))
	e.check(http.StatusAccepted, e.send(h, d.request()))
}

// S4: the Repositories of a group, which may be thousands, are listed at most once a second for
// unverified deliveries.
func TestS4GroupSecretsAreCached(t *testing.T) {
	e := webhookEnv(t)
	h := e.both()
	lists := 0
	neighbours := h.Lookup.Neighbours
	h.Lookup.Neighbours = func(canonical string) ([]*pacv1alpha1.Repository, func() []*pacv1alpha1.Repository) {
		naming, group := neighbours(canonical)
		return naming, func() []*pacv1alpha1.Repository { lists++; return group() }
	}
	const senders = 50
	began := time.Now()
	for n := range senders {
		d := webhookPush("guessed")
		d.message.URL = fmt.Sprintf("https://lab.example/acme/unknown-%d", n)
		e.check(http.StatusUnauthorized, e.send(h, d.request()))
	}
	if most := 1 + int(time.Since(began)/time.Second); lists > most {
		t.Errorf("%d deliveries listed the group %d times, want %d at most", senders, lists, most)
	}
}

// A sender that knows a secret of the group is verified, so it keeps its connection.
func TestGroupSecretKeepsTheConnection(t *testing.T) {
	e := webhookEnv(t)
	for secret, closing := range map[string]string{repositorySecret: "", "guessed": "close"} {
		d := webhookPush(secret)
		d.message.URL = unknownURL
		if got := e.send(e.both(), d.signed(secret).request()).Header().Get("Connection"); got != closing {
			t.Errorf("with the secret %q: Connection: %q, want %q", secret, got, closing)
		}
	}
}
