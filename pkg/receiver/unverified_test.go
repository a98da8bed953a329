// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	plumblinefake "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	"github.com/plumbline-ci/plumbline/pkg/receiver"
)

const unknownURL = "https://lab.example/acme/unknown"

// S34: all unverified senders get the same bytes, whether the project is onboarded or not. The log
// says which.
func TestS34UnverifiedSendersGetTheSameAnswer(t *testing.T) {
	guess := signedBy("guessed", func(*delivery) {})
	unknown := func(url string) func(*delivery) {
		return signedBy("guessed", func(d *delivery) { d.message.URL = url })
	}
	var first *httptest.ResponseRecorder
	for _, c := range []webhookCase{
		{"onboarded", nil, guess, http.StatusUnauthorized, "rejected/Unauthenticated"},
		{"not onboarded", nil, unknown("https://lab.example/others/app"), http.StatusUnauthorized, "rejected/NoRepository"},
		{"not onboarded, with others of its group", nil, unknown(unknownURL), http.StatusUnauthorized,
			"rejected/NoRepository"},
		{"not onboarded, on another host", nil, unknown("https://other.example/acme/app"), http.StatusUnauthorized,
			"rejected/NoRepository"},
		{"not onboarded, with the secret of another group", nil, signedBy(repositorySecret, func(d *delivery) {
			d.message.URL = "https://lab.example/others/app"
		}), http.StatusUnauthorized, "rejected/NoRepository"},
		{"onboarded without a webhook secret", func(e *env) { e.declare(func(*pacv1alpha1.Repository) {}) }, nil,
			http.StatusUnauthorized, "rejected/NoWebhookSecret"},
		{"onboarded on an App", func(e *env) { e.declare(func(r *pacv1alpha1.Repository) { r.Spec.GitProvider = nil }) }, nil,
			http.StatusUnauthorized, "rejected/NoWebhookSecret"},
		{"onboarded a moment ago", func(e *env) { e.unclaim() }, guess, http.StatusUnauthorized, "rejected/NotClaimedYet"},
		{"onboarded where the caches do not know it yet, with a token of its group", func(e *env) {
			const other = "https://lab.example/acme/other"
			e.replace(&pacv1alpha1.Repository{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "other"},
				Spec: pacv1alpha1.RepositorySpec{URL: other, GitProvider: &pacv1alpha1.GitProvider{
					Secret: &pacv1alpha1.Secret{Name: "other"}, WebhookSecret: &pacv1alpha1.Secret{Name: "other"},
				}},
			})
			e.store("ci", "other", map[string]string{"webhook.secret": "of-another-repository"})
			if err := e.client.Tracker().Add(claim(other, "ci", "other")); err != nil {
				e.t.Fatal(err)
			}
		}, signedBy(repositorySecret, func(d *delivery) { d.message.URL = "https://lab.example/acme/other" }),
			http.StatusUnauthorized, "rejected/Unauthenticated"},
		{"onboarded once", func(e *env) { e.remove("own") }, nil, http.StatusUnauthorized, "rejected/NoRepository"},
		{"onboarded, with a token of all", func(e *env) { e.global("") }, guess, http.StatusUnauthorized,
			"rejected/Unauthenticated"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.try(t)
			e, d := webhookEnv(t), webhookPush(repositorySecret)
			if c.arrange != nil {
				c.arrange(e)
			}
			if c.send != nil {
				c.send(&d)
			}
			got := e.send(e.both(), d.request())
			if first == nil {
				first = got
			}
			if diff := cmp.Diff(first.Header(), got.Header()); diff != "" || got.Body.String() != first.Body.String() ||
				got.Code != first.Code {
				t.Errorf("answered %d %s, and onboarded %d %s; headers %s", got.Code, got.Body, first.Code, first.Body, diff)
			}
		})
	}
}

// If a secret of the group cannot be read, the delivery must be sent again. A missing secret of a
// neighbour is skipped.
func TestUnreadableGroupSecrets(t *testing.T) {
	unknown := func(d *delivery) { d.message.URL, d.signature = unknownURL, "none" }
	for _, c := range []webhookCase{
		{"not copied yet", func(e *env) { e.copied = nil }, unknown, http.StatusServiceUnavailable,
			"unavailable/NotCopiedYet"},
		{"missing", func(e *env) { e.store("ci", "own", nil) }, unknown, http.StatusUnauthorized, "rejected/NoRepository"},
		{"the global Repository is unreadable", func(e *env) {
			e.failGlobal(apierrors.NewServiceUnavailable("shutting down"))
		}, unknown, http.StatusServiceUnavailable, "unavailable/Unavailable"},
	} {
		t.Run(c.name, c.try)
	}
}

// S4: unverified senders have a rate of their own. Past it they are answered 503 whatever they
// send, and cause no reads. Verified deliveries are not affected.
func TestS4UnverifiedSendersAreRateLimited(t *testing.T) {
	const more = 150
	for name, url := range map[string]string{"not onboarded": unknownURL, "onboarded": webhookURL} {
		t.Run(name, func(t *testing.T) {
			e := webhookEnv(t)
			e.cached = receiver.LiveView(e.client, systemNamespace, 0)
			h := e.both()
			live := plumblinefake.NewSimpleClientset()
			h.Lookup.Unverified = receiver.LiveView(live, systemNamespace, 0)
			var answers sync.Map
			var busy sync.WaitGroup
			for range receiver.UnverifiedBurst + more {
				busy.Go(func() {
					d := webhookPush("guessed")
					d.message.URL = url
					recorder := httptest.NewRecorder()
					h.ServeHTTP(recorder, d.request())
					count, _ := answers.LoadOrStore(recorder.Code, new(counter))
					count.(*counter).add()
				})
			}
			busy.Wait()
			refused, past := n(&answers, http.StatusUnauthorized), n(&answers, http.StatusServiceUnavailable)
			if refused < receiver.UnverifiedBurst || past == 0 || refused+past != receiver.UnverifiedBurst+more {
				t.Errorf("%d answered 401 and %d 503, want at least %d and some", refused, past, receiver.UnverifiedBurst)
			}
			if got := e.counted("rejected", "TooManyUnverified"); got != int64(past) {
				t.Errorf("%d are counted, want %d", got, past)
			}
			reads := refused // of the claim
			if url == webhookURL {
				reads = 0
			}
			if got := len(live.Actions()); got != reads {
				t.Errorf("%d reads for %d unverified deliveries, want %d", got, receiver.UnverifiedBurst+more, reads)
			}
			e.check(http.StatusAccepted, e.send(h, webhookPush(repositorySecret).request()))
			verified := webhookPush(repositorySecret)
			verified.message.URL = unknownURL
			e.check(http.StatusOK, e.send(h, verified.signed(repositorySecret).request()))
		})
	}
}

// An unverified delivery for a Repository that the caches do not know counts once: for the look-up
// and the answer together.
func TestUnverifiedDeliveryCountsOnce(t *testing.T) {
	e := webhookEnv(t)
	h := e.both()
	for range receiver.UnverifiedBurst - 10 {
		e.check(http.StatusUnauthorized, e.send(h, webhookPush("guessed").request()))
	}
}

type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

func n(counters *sync.Map, key int) int {
	c, ok := counters.Load(key)
	if !ok {
		return 0
	}
	return c.(*counter).n
}

// S34: the time of the answer shows nothing either: unverified senders are answered late, whatever
// was looked up.
func TestS34UnverifiedSendersAreAnsweredLate(t *testing.T) {
	const late = 300 * time.Millisecond
	for _, url := range []string{webhookURL, unknownURL} {
		e := webhookEnv(t)
		d := webhookPush("guessed")
		d.message.URL = url
		begin := time.Now()
		e.check(http.StatusUnauthorized, e.send(e.both().AnswerUnverifiedAfter(late), d.request()))
		if took := time.Since(begin); took < late {
			t.Errorf("%s: answered after %v, want not before %v", url, took, late)
		}
	}
}
