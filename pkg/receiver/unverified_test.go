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

// S34: who proves nothing is answered with the same bytes, whether the repository is onboarded or
// not; the log tells which.
func TestS34StrangersAreAnsweredAlike(t *testing.T) {
	guess := signedBy("guessed", func(*delivery) {})
	unknown := func(url string) func(*delivery) {
		return signedBy("guessed", func(d *delivery) { d.message.URL = url })
	}
	var first *httptest.ResponseRecorder
	for _, c := range []ownCase{
		{"onboarded", nil, guess, http.StatusUnauthorized, "rejected/Unauthenticated"},
		{"not onboarded", nil, unknown("https://lab.example/others/app"), http.StatusUnauthorized, "rejected/NoRepository"},
		{"not onboarded, with others of its group", nil, unknown(unknownURL), http.StatusUnauthorized, "rejected/NoRepository"},
		{"not onboarded, on another host", nil, unknown("https://other.example/acme/app"), http.StatusUnauthorized, "rejected/NoRepository"},
		{"not onboarded, with the secret of another group", nil, signedBy(ownSecret, func(d *delivery) { d.message.URL = "https://lab.example/others/app" }), http.StatusUnauthorized, "rejected/NoRepository"},
		{"onboarded without a webhook secret", func(w *env) { w.declare(func(*pacv1alpha1.Repository) {}) }, nil, http.StatusUnauthorized, "rejected/NoWebhookSecret"},
		{"onboarded on an App", func(w *env) { w.declare(func(r *pacv1alpha1.Repository) { r.Spec.GitProvider = nil }) }, nil, http.StatusUnauthorized, "rejected/NoWebhookSecret"},
		{"onboarded a moment ago", func(w *env) { w.unclaim() }, guess, http.StatusUnauthorized, "rejected/NotClaimedYet"},
		{"onboarded where the caches do not know it yet, with a token of its group", func(w *env) {
			const other = "https://lab.example/acme/other"
			w.replace(&pacv1alpha1.Repository{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "other"},
				Spec: pacv1alpha1.RepositorySpec{URL: other, GitProvider: &pacv1alpha1.GitProvider{
					Secret: &pacv1alpha1.Secret{Name: "other"}, WebhookSecret: &pacv1alpha1.Secret{Name: "other"},
				}},
			})
			w.store("ci", "other", map[string]string{"webhook.secret": "of-another-repository"})
			if err := w.client.Tracker().Add(claim(other, "ci", "other")); err != nil {
				w.t.Fatal(err)
			}
		}, signedBy(ownSecret, func(d *delivery) { d.message.URL = "https://lab.example/acme/other" }), http.StatusUnauthorized, "rejected/Unauthenticated"},
		{"onboarded once", func(w *env) { w.remove("own") }, nil, http.StatusUnauthorized, "rejected/NoRepository"},
		{"onboarded, with a token of all", func(w *env) { w.global("") }, guess, http.StatusUnauthorized, "rejected/Unauthenticated"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.try(t)
			w, d := webhookEnv(t), ownPush(ownSecret)
			if c.arrange != nil {
				c.arrange(w)
			}
			if c.send != nil {
				c.send(&d)
			}
			got := w.send(w.both(), d.request())
			if first == nil {
				first = got
			}
			if diff := cmp.Diff(first.Header(), got.Header()); diff != "" || got.Body.String() != first.Body.String() || got.Code != first.Code {
				t.Errorf("answered %d %s, and onboarded %d %s; headers %s", got.Code, got.Body, first.Code, first.Body, diff)
			}
		})
	}
}

// A secret that would vouch and cannot be read refuses nobody for good; one of a neighbour that is
// missing refuses nobody else.
func TestVouchersThatCannotBeRead(t *testing.T) {
	stranger := func(d *delivery) { d.message.URL, d.signature = unknownURL, "none" }
	for _, c := range []ownCase{
		{"not copied yet", func(w *env) { w.copied = nil }, stranger, http.StatusServiceUnavailable, "unavailable/NotCopiedYet"},
		{"missing", func(w *env) { w.store("ci", "own", nil) }, stranger, http.StatusUnauthorized, "rejected/NoRepository"},
		{"the global Repository is unreadable", func(w *env) { w.failGlobal(apierrors.NewServiceUnavailable("shutting down")) }, stranger, http.StatusServiceUnavailable, "unavailable/Unavailable"},
	} {
		t.Run(c.name, c.try)
	}
}

// S4: strangers have a budget of their own. Past it they are told to come again whatever they ask
// for, read nothing, and take nothing from those that somebody vouches for.
func TestS4StrangersHaveABudget(t *testing.T) {
	const more = 150
	for name, url := range map[string]string{"not onboarded": unknownURL, "onboarded": ownURL} {
		t.Run(name, func(t *testing.T) {
			w := webhookEnv(t)
			w.cached = receiver.LiveView(w.client, systemNamespace, 0)
			h := w.both()
			asked := plumblinefake.NewSimpleClientset()
			h.Lookup.Unverified = receiver.LiveView(asked, systemNamespace, 0)
			var answers sync.Map
			var busy sync.WaitGroup
			for range receiver.UnverifiedBurst + more {
				busy.Go(func() {
					d := ownPush("guessed")
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
			if got := w.counted("rejected", "TooManyUnverified"); got != int64(past) {
				t.Errorf("%d are counted, want %d", got, past)
			}
			reads := refused // of the claim
			if url == ownURL {
				reads = 0
			}
			if got := len(asked.Actions()); got != reads {
				t.Errorf("%d reads for %d strangers, want %d", got, receiver.UnverifiedBurst+more, reads)
			}
			w.check(http.StatusAccepted, w.send(h, ownPush(ownSecret).request()))
			vouched := ownPush(ownSecret)
			vouched.message.URL = unknownURL
			w.check(http.StatusOK, w.send(h, vouched.signed(ownSecret).request()))
		})
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

// S34: nor does the time tell anything: who is not believed is answered late, whatever was looked
// up.
func TestS34StrangersAreAnsweredLate(t *testing.T) {
	const late = 300 * time.Millisecond
	for _, url := range []string{ownURL, unknownURL} {
		w := webhookEnv(t)
		d := ownPush("guessed")
		d.message.URL = url
		begin := time.Now()
		w.check(http.StatusUnauthorized, w.send(w.both().AnswerUnverifiedAfter(late), d.request()))
		if took := time.Since(begin); took < late {
			t.Errorf("%s: answered after %v, want not before %v", url, took, late)
		}
	}
}
