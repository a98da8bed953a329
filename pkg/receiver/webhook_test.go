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

func TestWebhookDeliveriesAreVerified(t *testing.T) { // A9
	unavailable := apierrors.NewServiceUnavailable("shutting down")
	inherits := func(r *pacv1alpha1.Repository) { r.Spec.GitProvider = &pacv1alpha1.GitProvider{Type: "own"} }
	for _, c := range []webhookCase{
		{"the Repository's secret", nil, nil, http.StatusAccepted, "recorded/Recorded"},
		{"another secret", nil, signedBy("guessed", func(*delivery) {}), http.StatusUnauthorized, "rejected/Unauthenticated"},
		{"an unverified delivery is not decoded: this would panic", nil,
			signedBy("guessed", func(d *delivery) { d.event = "panic" }), http.StatusUnauthorized, "rejected/Unauthenticated"},
		{"an unverified delivery is not ignored", nil, signedBy("guessed", func(d *delivery) { d.event = "ping" }),
			http.StatusUnauthorized, "rejected/Unauthenticated"},
		{"the App's secret", nil, signedBy(webhookSecret, func(*delivery) {}), http.StatusUnauthorized,
			"rejected/Unauthenticated"},
		{"an empty secret is none", func(e *env) { e.store("ci", "own", map[string]string{"webhook.secret": " \n"}) },
			signedBy("", func(*delivery) {}), http.StatusServiceUnavailable, "unavailable/SecretMissing"},
		{"a Secret without the key", func(e *env) { e.store("ci", "own", map[string]string{"other": repositorySecret}) }, nil,
			http.StatusServiceUnavailable, "unavailable/SecretMissing"},
		{"a missing Secret", func(e *env) { delete(e.copied, "ci/own") }, nil, http.StatusServiceUnavailable,
			"unavailable/SecretMissing"},
		{"no secret is copied yet", func(e *env) { e.copied = nil }, nil, http.StatusServiceUnavailable,
			"unavailable/NotCopiedYet"},
		{"a wrong secret while no secret is copied yet", func(e *env) { e.copied = nil },
			signedBy("guessed", func(*delivery) {}), http.StatusServiceUnavailable, "unavailable/NotCopiedYet"},
		{"a Repository that names no webhook secret", func(e *env) { e.declare(func(*pacv1alpha1.Repository) {}) }, nil,
			http.StatusUnauthorized, "rejected/NoWebhookSecret"},
		{"a Repository of the App", func(e *env) { e.declare(func(r *pacv1alpha1.Repository) { r.Spec.GitProvider = nil }) },
			nil, http.StatusUnauthorized, "rejected/NoWebhookSecret"},
		{"the global Repository's secret, for one that names no token", func(e *env) { e.declare(inherits); e.global("") },
			signedBy(globalSecret, func(*delivery) {}), http.StatusAccepted, "recorded/Recorded"},
		{"the global Repository's secret, for a Repository with its own", func(e *env) { e.global("") },
			signedBy(globalSecret, func(*delivery) {}), http.StatusUnauthorized, "rejected/Unauthenticated"},
		{"a webhook secret of its own with the global token: its namespace is not the token's", func(e *env) {
			e.global("")
			e.declare(func(r *pacv1alpha1.Repository) {
				inherits(r)
				r.Spec.GitProvider.WebhookSecret = &pacv1alpha1.Secret{Name: "own"}
			})
		}, nil, http.StatusUnauthorized, "rejected/Unauthenticated"},
		{"a global Repository that cannot be read", func(e *env) { e.failGlobal(unavailable) }, nil,
			http.StatusServiceUnavailable, "unavailable/Unavailable"},
		{"a URL that the global token is not for", func(e *env) {
			e.global("https://lab.example")
			e.declare(func(r *pacv1alpha1.Repository) { inherits(r); r.Spec.GitProvider.URL = "https://other.example" })
		}, nil, http.StatusServiceUnavailable, "unavailable/BadRepository"},
		{"a Repository on a host that the global token is not for", func(e *env) {
			e.declare(inherits)
			e.global("")
			elsewhere := repository(systemNamespace, "global", "https://other.example/global")
			elsewhere.Spec.GitProvider = &pacv1alpha1.GitProvider{
				Secret: &pacv1alpha1.Secret{Name: "all"}, WebhookSecret: &pacv1alpha1.Secret{Name: "all", Key: "hook"},
			}
			e.replace(elsewhere)
		}, signedBy(globalSecret, func(*delivery) {}), http.StatusOK, "ignored/OtherHost"},
	} {
		t.Run(c.name, c.try)
	}
}

// GitLab disables a webhook whose deliveries are answered with errors, so a delivery that is not
// acted on is answered 200 (L8, A12).
func TestWebhookDeliveriesThatAreIgnored(t *testing.T) {
	for _, c := range []webhookCase{
		{"an event that is never acted on", nil, signedBy(repositorySecret, func(d *delivery) { d.event = "wiki" }),
			http.StatusOK, "ignored/EventIgnored"},
		{"a project of a group whose webhook serves another one", nil,
			signedBy(repositorySecret, func(d *delivery) { d.message.URL = unknownURL }), http.StatusOK, "ignored/NoRepository"},
		{"a project whose webhook has the token of all", func(e *env) { e.global("") }, signedBy(globalSecret,
			func(d *delivery) { d.message.URL = "https://lab.example/others/app" }), http.StatusOK, "ignored/NoRepository"},
		{"a deleted Repository", func(e *env) { e.remove("own"); e.global("") }, signedBy(globalSecret, func(*delivery) {}),
			http.StatusOK, "ignored/NoRepository"},
		{"an event of a group, which names no repository", nil, func(d *delivery) { d.message.URL = "" }, http.StatusOK,
			"ignored/NoRepository"},
		{"a URL without a repository", nil, func(d *delivery) { d.message.URL = "lab.example" }, http.StatusOK,
			"ignored/NoRepository"},
		{"a URL with two readings", nil, func(d *delivery) { d.message.URL = "https://lab.example/a/../b" }, http.StatusOK,
			"ignored/NoRepository"},
		{"an event of another host than its repository's", nil, signedBy(repositorySecret,
			func(d *delivery) { d.message.Host = "evil.example" }), http.StatusOK, "ignored/OtherHost"},
		{"a Repository that is configured for another host", func(e *env) {
			e.declare(func(r *pacv1alpha1.Repository) {
				r.Spec.GitProvider.URL, r.Spec.GitProvider.WebhookSecret = "https://other.example", &pacv1alpha1.Secret{Name: "own"}
			})
		}, nil, http.StatusOK, "ignored/OtherHost"},
		{"a service that has only an App", nil, func(d *delivery) { d.service = service{} }, http.StatusOK,
			"ignored/NotTheApp"},
	} {
		t.Run(c.name, c.try)
	}
}

func TestWebhookDeliveriesThatFail(t *testing.T) {
	boom := apierrors.NewInternalError(errors.New("boom"))
	for _, c := range []webhookCase{
		{"not JSON", nil, func(d *delivery) { d.raw = []byte("x=" + bodyMarker) }, http.StatusBadRequest, "rejected/BadJSON"},
		{"a needed field is missing", nil, signedBy(repositorySecret, func(d *delivery) { d.message.SHA = "" }),
			http.StatusBadRequest, "rejected/MissingField"},
		{"larger than any service sends", nil, func(d *delivery) { d.raw = make([]byte, receiver.MaxBodyBytes+1) },
			http.StatusRequestEntityTooLarge, "rejected/TooLarge"},
		{"a claim that cannot be read", func(e *env) { e.fail("get", "repositoryclaims", boom) }, nil,
			http.StatusServiceUnavailable, "unavailable/Unavailable"},
		{"a record that cannot be written", func(e *env) { e.fail("create", "gitevents", boom) }, nil,
			http.StatusServiceUnavailable, "unavailable/Unavailable"},
		{"a panic", nil, signedBy(repositorySecret, func(d *delivery) { d.event = "panic" }), http.StatusServiceUnavailable,
			"unavailable/Panic"},
	} {
		t.Run(c.name, c.try)
	}
}

// One handler serves both kinds of services, each with its own secrets only.
func TestAppAndWebhooksUseTheirOwnSecrets(t *testing.T) {
	e := webhookEnv(t)
	h := e.both()
	own := webhookPush(repositorySecret)
	e.check(http.StatusAccepted, e.send(h, push("k1").request()))
	e.check(http.StatusAccepted, e.send(h, own.request()))
	again := e.send(h, own.request())
	e.check(http.StatusAccepted, again)
	if !strings.Contains(again.Body.String(), "already recorded") {
		t.Errorf("the same delivery again: %s", again.Body)
	}
	providers := map[string]string{}
	for _, event := range e.wantEvents(2) {
		providers[event.Spec.Provider] = event.Spec.Repository.Name
	}
	if providers["test"] != "app" || providers["own"] != "own" {
		t.Errorf("recorded for %v", providers)
	}

	// A request with the headers of both is the first service's, and needs its signature.
	claims := own.request()
	claims.Header.Set("X-Test-Event", "push")
	e.check(http.StatusOK, e.send(h, claims))
	app := own
	app.message.App = true
	app = app.signed(repositorySecret)
	both := app.request()
	both.Header.Set("X-Test-Event", "push")
	both.Header.Set("X-Test-Signature", app.signature)
	e.check(http.StatusUnauthorized, e.send(h, both))
	// The secret of another Repository does not verify a delivery for a Repository of the App.
	foreign := webhookPush(repositorySecret)
	foreign.message.URL, foreign.message.Host = repositoryURL, "git.example"
	foreign = foreign.signed(repositorySecret)
	e.check(http.StatusUnauthorized, e.send(h, foreign.request()))
	e.wantEvents(2)
}

func TestGlobalRepositoryIsReadOnce(t *testing.T) {
	e := webhookEnv(t)
	live := receiver.LiveView(e.client, systemNamespace, 0)
	read := func(name string) (*pacv1alpha1.Repository, error) {
		return receiver.GlobalOf(e.cached, live, systemNamespace, name)(t.Context())
	}
	if got, err := read("global"); got != nil || err != nil {
		t.Errorf("none exists: %v, %v", got, err)
	}
	calls := len(e.client.Actions())
	reader := receiver.GlobalOf(e.cached, live, systemNamespace, "global")
	for range 5 {
		if got, err := reader(t.Context()); got != nil || err != nil {
			t.Errorf("none exists: %v, %v", got, err)
		}
	}
	if got := len(e.client.Actions()) - calls; got > 2 { // two, when a second ends meanwhile
		t.Errorf("read live %d times at once, want once", got)
	}
	e.global("")
	if got, err := read("global"); err != nil || got.Name != "global" {
		t.Errorf("not in the cache, so read live: %v, %v", got, err)
	}
	calls = len(e.client.Actions())
	if got, err := read(""); got != nil || err != nil || len(e.client.Actions()) != calls {
		t.Errorf("no name is configured: %v, %v, want no call", got, err)
	}
	e.failGlobal(&apierrors.StatusError{ErrStatus: metav1.Status{Status: "Failure", Code: http.StatusNotFound,
		Reason:  metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{}}})
	if got, err := read("global"); err == nil {
		t.Errorf("the kind is not served: %v, %v, want an error: that is not \"none\" (B9)", got, err)
	}
}
