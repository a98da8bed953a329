// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/receiver"
)

func TestOwnDeliveriesAreVerified(t *testing.T) { // A9
	unavailable := apierrors.NewServiceUnavailable("shutting down")
	inherits := func(r *pacv1alpha1.Repository) { r.Spec.GitProvider = &pacv1alpha1.GitProvider{Type: "own"} }
	for _, c := range []ownCase{
		{"the Repository's secret", nil, nil, http.StatusAccepted, "recorded/Recorded"},
		{"another secret", nil, signedBy("guessed", func(*delivery) {}), http.StatusUnauthorized, "rejected/Unauthenticated"},
		{"what is not verified is not decoded: this would panic", nil, signedBy("guessed", func(d *delivery) { d.event = "panic" }), http.StatusUnauthorized, "rejected/Unauthenticated"},
		{"what is not verified is no ignored event either", nil, signedBy("guessed", func(d *delivery) { d.event = "ping" }), http.StatusUnauthorized, "rejected/Unauthenticated"},
		{"the App's secret", nil, signedBy(webhookSecret, func(*delivery) {}), http.StatusUnauthorized, "rejected/Unauthenticated"},
		{"an empty secret is none", func(w *env) { w.store("ci", "own", map[string]string{"webhook.secret": " \n"}) }, signedBy("", func(*delivery) {}), http.StatusServiceUnavailable, "unavailable/SecretMissing"},
		{"a Secret without the key", func(w *env) { w.store("ci", "own", map[string]string{"other": ownSecret}) }, nil, http.StatusServiceUnavailable, "unavailable/SecretMissing"},
		{"a Secret that is not there", func(w *env) { delete(w.copied, "ci/own") }, nil, http.StatusServiceUnavailable, "unavailable/SecretMissing"},
		{"nothing is copied yet", func(w *env) { w.copied = nil }, nil, http.StatusServiceUnavailable, "unavailable/NotCopiedYet"},
		{"a secret that is not copied yet refuses nobody, wrong as the delivery is", func(w *env) { w.copied = nil }, signedBy("guessed", func(*delivery) {}), http.StatusServiceUnavailable, "unavailable/NotCopiedYet"},
		{"a Repository that names no webhook secret", func(w *env) { w.declare(func(*pacv1alpha1.Repository) {}) }, nil, http.StatusUnauthorized, "rejected/NoWebhookSecret"},
		{"a Repository of the App", func(w *env) { w.declare(func(r *pacv1alpha1.Repository) { r.Spec.GitProvider = nil }) }, nil, http.StatusUnauthorized, "rejected/NoWebhookSecret"},
		{"the global Repository's secret, for one that names no token", func(w *env) { w.declare(inherits); w.global("") }, signedBy(globalSecret, func(*delivery) {}), http.StatusAccepted, "recorded/Recorded"},
		{"the global Repository's secret opens no Repository with one of its own", func(w *env) { w.global("") }, signedBy(globalSecret, func(*delivery) {}), http.StatusUnauthorized, "rejected/Unauthenticated"},
		{"a webhook secret of its own beside the global token is not believed: its namespace is not the token's", func(w *env) {
			w.global("")
			w.declare(func(r *pacv1alpha1.Repository) {
				inherits(r)
				r.Spec.GitProvider.WebhookSecret = &pacv1alpha1.Secret{Name: "own"}
			})
		}, nil, http.StatusUnauthorized, "rejected/Unauthenticated"},
		{"a global Repository that cannot be read", func(w *env) { w.failGlobal(unavailable) }, nil, http.StatusServiceUnavailable, "unavailable/Unavailable"},
		{"a URL that the global token is not for", func(w *env) {
			w.global("https://lab.example")
			w.declare(func(r *pacv1alpha1.Repository) { inherits(r); r.Spec.GitProvider.URL = "https://other.example" })
		}, nil, http.StatusServiceUnavailable, "unavailable/BadRepository"},
		{"a Repository on a host that the global token is not for", func(w *env) {
			w.declare(inherits)
			w.global("")
			elsewhere := repository(systemNamespace, "global", "https://other.example/global")
			elsewhere.Spec.GitProvider = &pacv1alpha1.GitProvider{Secret: &pacv1alpha1.Secret{Name: "all"}, WebhookSecret: &pacv1alpha1.Secret{Name: "all", Key: "hook"}}
			w.replace(elsewhere)
		}, signedBy(globalSecret, func(*delivery) {}), http.StatusOK, "ignored/OtherHost"},
	} {
		t.Run(c.name, c.try)
	}
}

// GitLab disables a hook that is answered with errors: what nobody wants is none (L8, A12).
func TestOwnDeliveriesThatNobodyWants(t *testing.T) {
	for _, c := range []ownCase{
		{"an event that is never acted on", nil, signedBy(ownSecret, func(d *delivery) { d.event = "wiki" }), http.StatusOK, "ignored/EventIgnored"},
		{"a project of a group whose webhook serves another one", nil, signedBy(ownSecret, func(d *delivery) { d.message.URL = unknownURL }), http.StatusOK, "ignored/NoRepository"},
		{"a project whose webhook has the token of all", func(w *env) { w.global("") }, signedBy(globalSecret, func(d *delivery) { d.message.URL = "https://lab.example/others/app" }), http.StatusOK, "ignored/NoRepository"},
		{"a Repository that is gone", func(w *env) { w.remove("own"); w.global("") }, signedBy(globalSecret, func(*delivery) {}), http.StatusOK, "ignored/NoRepository"},
		{"an event of a group, which names no repository", nil, func(d *delivery) { d.message.URL = "" }, http.StatusOK, "ignored/NoRepository"},
		{"a URL of no repository", nil, func(d *delivery) { d.message.URL = "lab.example" }, http.StatusOK, "ignored/NoRepository"},
		{"a URL with two readings", nil, func(d *delivery) { d.message.URL = "https://lab.example/a/../b" }, http.StatusOK, "ignored/NoRepository"},
		{"an event of another host than its repository's", nil, signedBy(ownSecret, func(d *delivery) { d.message.Host = "evil.example" }), http.StatusOK, "ignored/OtherHost"},
		{"a Repository that is configured for another host", func(w *env) {
			w.declare(func(r *pacv1alpha1.Repository) {
				r.Spec.GitProvider.URL, r.Spec.GitProvider.WebhookSecret = "https://other.example", &pacv1alpha1.Secret{Name: "own"}
			})
		}, nil, http.StatusOK, "ignored/OtherHost"},
		{"a service that only an App is served of", nil, func(d *delivery) { d.service = service{} }, http.StatusOK, "ignored/NotTheApp"},
	} {
		t.Run(c.name, c.try)
	}
}

func TestOwnDeliveriesThatAreNone(t *testing.T) {
	boom := apierrors.NewInternalError(errors.New("boom"))
	for _, c := range []ownCase{
		{"not JSON", nil, func(d *delivery) { d.raw = []byte("x=" + bodyMarker) }, http.StatusBadRequest, "rejected/BadJSON"},
		{"a needed field is missing", nil, signedBy(ownSecret, func(d *delivery) { d.message.SHA = "" }), http.StatusBadRequest, "rejected/MissingField"},
		{"larger than any service sends", nil, func(d *delivery) { d.raw = make([]byte, receiver.MaxBodyBytes+1) }, http.StatusRequestEntityTooLarge, "rejected/TooLarge"},
		{"a claim that cannot be read", func(w *env) { w.fail("get", "repositoryclaims", boom) }, nil, http.StatusServiceUnavailable, "unavailable/Unavailable"},
		{"a record that cannot be written", func(w *env) { w.fail("create", "gitevents", boom) }, nil, http.StatusServiceUnavailable, "unavailable/Unavailable"},
		{"a panic", nil, signedBy(ownSecret, func(d *delivery) { d.event = "panic" }), http.StatusServiceUnavailable, "unavailable/Panic"},
	} {
		t.Run(c.name, c.try)
	}
}

// One handler serves both kinds of services, each with its own secrets only.
func TestTwoServicesSideBySide(t *testing.T) {
	w := webhookEnv(t)
	h := w.both()
	own := ownPush(ownSecret)
	w.check(http.StatusAccepted, w.send(h, push("k1").request()))
	w.check(http.StatusAccepted, w.send(h, own.request()))
	again := w.send(h, own.request())
	w.check(http.StatusAccepted, again)
	if !strings.Contains(again.Body.String(), "already recorded") {
		t.Errorf("the same delivery again: %s", again.Body)
	}
	providers := map[string]string{}
	for _, event := range w.wantEvents(2) {
		providers[event.Spec.Provider] = event.Spec.Repository.Name
	}
	if providers["test"] != "app" || providers["own"] != "own" {
		t.Errorf("recorded for %v", providers)
	}

	// What claims to be of both is the first one's, and has to be signed as that one asks.
	claims := own.request()
	claims.Header.Set("X-Test-Event", "push")
	w.check(http.StatusOK, w.send(h, claims))
	app := own
	app.message.App = true
	app = app.signed(ownSecret)
	both := app.request()
	both.Header.Set("X-Test-Event", "push")
	both.Header.Set("X-Test-Signature", app.signature)
	w.check(http.StatusUnauthorized, w.send(h, both))
	// A Repository of the App is opened by no secret of another one.
	foreign := ownPush(ownSecret)
	foreign.message.URL, foreign.message.Host = repositoryURL, "git.example"
	foreign = foreign.signed(ownSecret)
	w.check(http.StatusUnauthorized, w.send(h, foreign.request()))
	w.wantEvents(2)
}

func TestGlobalRepository(t *testing.T) {
	w := webhookEnv(t)
	live := receiver.LiveView(w.client, systemNamespace, 0)
	read := func(name string) (*pacv1alpha1.Repository, error) {
		return receiver.GlobalOf(w.cached, live, systemNamespace, name)(t.Context())
	}
	if got, err := read("global"); got != nil || err != nil {
		t.Errorf("none is there: %v, %v", got, err)
	}
	calls := len(w.client.Actions())
	reader := receiver.GlobalOf(w.cached, live, systemNamespace, "global")
	for range 5 {
		if got, err := reader(t.Context()); got != nil || err != nil {
			t.Errorf("none is there: %v, %v", got, err)
		}
	}
	if got := len(w.client.Actions()) - calls; got > 2 { // two, when a second ends meanwhile
		t.Errorf("asked live %d times at once, want once", got)
	}
	w.global("")
	if got, err := read("global"); err != nil || got.Name != "global" {
		t.Errorf("what the cache does not have is asked live: %v, %v", got, err)
	}
	calls = len(w.client.Actions())
	if got, err := read(""); got != nil || err != nil || len(w.client.Actions()) != calls {
		t.Errorf("no name is configured: %v, %v, want no call", got, err)
	}
	w.failGlobal(&apierrors.StatusError{ErrStatus: metav1.Status{Status: "Failure", Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{}}})
	if got, err := read("global"); err == nil {
		t.Errorf("the kind is not served: %v, %v, want an error: that is not \"none\" (B9)", got, err)
	}
}
