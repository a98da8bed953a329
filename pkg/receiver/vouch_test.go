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

// S34: a stranger who lets the body arrive slowly does not get the answer sooner after it, which
// would tell what was looked up.
func TestS34ASlowBodyIsAnsweredAsLate(t *testing.T) {
	const late = 300 * time.Millisecond
	w := webhookEnv(t)
	h := w.both().AnswerUnverifiedAfter(late)
	request := ownPush("guessed").request()
	request.Body = slowBody{request.Body, w}
	begin := time.Now()
	w.check(http.StatusUnauthorized, w.send(h, request))
	if took := time.Since(begin); took < late {
		t.Errorf("answered %v after the body was there, want not before %v", took, late)
	}
}

// neighbour is a Repository of the same group with a webhook secret of its own.
func (w *env) neighbour(namespace, name, value string) {
	w.t.Helper()
	r := repository(namespace, name, "https://lab.example/acme/"+namespace+"-"+name)
	r.Spec.GitProvider = &pacv1alpha1.GitProvider{Type: "own", Secret: &pacv1alpha1.Secret{Name: name}, WebhookSecret: &pacv1alpha1.Secret{Name: name}}
	w.replace(r)
	if value != "" {
		w.store(namespace, name, map[string]string{"webhook.secret": value})
	}
}

// A group's webhook goes on being answered 200 for projects that nobody has onboarded, however many
// Repositories one tenant says are of that group, and from however many namespaces the group's own
// are.
func TestNobodyDisplacesAVoucher(t *testing.T) {
	w := webhookEnv(t)
	for n := range 100 {
		w.neighbour("a-tenant", fmt.Sprintf("fake-%03d", n), "made up")
	}
	for n := range 20 {
		w.neighbour(fmt.Sprintf("a-team-%02d", n), "app", fmt.Sprint("of team ", n))
	}
	d := ownPush(ownSecret)
	d.message.URL = unknownURL
	w.check(http.StatusOK, w.send(w.both(), d.signed(ownSecret).request()))
}

// Nobody waits for a neighbour's secret that is missing: it would keep a group's true delivery
// waiting, 2 s for each, and tell a stranger that somebody of the group is onboarded.
func TestNobodyWaitsForANeighboursSecret(t *testing.T) {
	w := webhookEnv(t)
	a := w.asking(nil)
	for n := range 5 {
		w.neighbour("a-tenant", fmt.Sprint("missing-", n), "")
	}
	h := w.both()
	c := w.copies()
	c.Wait = time.Hour // whoever waits never ends
	h.Services = receiver.Services{Global: receiver.GlobalOf(w.cached, receiver.LiveView(w.client, systemNamespace, 0), systemNamespace, "global"), Copies: c}
	d := ownPush(ownSecret)
	d.message.URL = unknownURL
	w.check(http.StatusOK, w.send(h, d.signed(ownSecret).request()))
	if len(a.came) != 0 {
		t.Errorf("asked for %q", a.asks)
	}
}

// A shard that somebody deleted and a controller fills again takes no secret away that is known,
// until it is complete.
func TestAShardThatIsFilledAgain(t *testing.T) {
	const name = "plumbline/plumbline-github-app"
	w := newEnv(t)
	c := w.copies()
	h := w.replica()
	h.Secret = secrets.AppSecret{Copies: c, Namespace: systemNamespace, Name: "plumbline-github-app"}
	w.check(http.StatusAccepted, w.send(h, push("k1").request()))
	for _, shard := range shards(nil) {
		shard.Annotations = nil
		c.Set(shard)
	}
	w.check(http.StatusAccepted, w.send(h, push("k2").request()))
	for _, shard := range shards(map[string]map[string]string{name: {"webhook.secret": "another"}}) {
		c.Set(shard)
	}
	w.check(http.StatusUnauthorized, w.send(h, push("k3").request()))
}

// Deliveries for Repositories whose Secrets are missing do not take the room that the App's
// deliveries need to wait for a rotation.
func TestMissingSecretsLeaveRoomForARotation(t *testing.T) {
	const fresh = "the-secret-of-a-moment-ago"
	w := newEnv(t)
	c := w.copies()
	c.Wait = time.Minute
	ctx, stop := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	defer busy.Wait()
	defer stop()
	for n := range 100 {
		busy.Go(func() { _, _ = c.Secret(ctx, secretKey(fmt.Sprint("a-tenant/missing-", n), "webhook.secret")) })
	}
	const room = 12
	until(t, "all that have room wait", func() bool { return c.Waiting() >= room })
	h := w.replica()
	h.Secret = secrets.AppSecret{Copies: c, Namespace: systemNamespace, Name: "plumbline-github-app"}
	busy.Go(func() {
		until(t, "the delivery waits, too", func() bool { return c.Waiting() > room })
		for _, shard := range shards(map[string]map[string]string{"plumbline/plumbline-github-app": {"webhook.secret": fresh}}) {
			c.Set(shard)
		}
	})
	d := push("k1")
	d.signature = sign(mustBody(d), []byte(fresh))
	w.check(http.StatusAccepted, w.send(h, d.request()))
}

// S4: a stranger's delivery for a project of a group with thousands of Repositories does not look
// at all of them: at most once a second somebody's does.
func TestS4AGroupIsLookedAtOnce(t *testing.T) {
	w := webhookEnv(t)
	h := w.both()
	looks := 0
	beside := h.Lookup.Neighbours
	h.Lookup.Neighbours = func(canonical string) ([]*pacv1alpha1.Repository, func() []*pacv1alpha1.Repository) {
		naming, group := beside(canonical)
		return naming, func() []*pacv1alpha1.Repository { looks++; return group() }
	}
	const strangers = 50
	began := time.Now()
	for n := range strangers {
		d := ownPush("guessed")
		d.message.URL = fmt.Sprintf("https://lab.example/acme/unknown-%d", n)
		w.check(http.StatusUnauthorized, w.send(h, d.request()))
	}
	if most := 1 + int(time.Since(began)/time.Second); looks > most {
		t.Errorf("%d strangers looked at the group %d times, want %d at most", strangers, looks, most)
	}
}
