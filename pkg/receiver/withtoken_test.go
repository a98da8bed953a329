// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"net/http"
	"testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/receiver"
)

// appAndTokens returns a replica with one service that has an App, and that Repositories with a
// token use without it.
func (e *env) appAndTokens() *receiver.Handler {
	h := e.both()
	e.baseURL = "https://lab.example"
	h.Providers = []provider.Provider{{
		Name: "test", Webhook: service{}, SignsBody: true,
		WithToken: &provider.Provider{Name: "test", Webhook: service{}, BaseURL: baseURL, SignsBody: true},
	}}
	return h
}

// withToken makes the Repository ci/own name a token and a webhook secret.
func (e *env) withToken(secret *pacv1alpha1.Secret) {
	e.declare(func(r *pacv1alpha1.Repository) { r.Spec.GitProvider.WebhookSecret = secret })
}

func TestWebhookOfRepositoryIsServedNextToTheApp(t *testing.T) {
	own, app := webhookPush(repositorySecret), webhookPush(webhookSecret)
	own.service, app.service, app.message.App = service{}, service{}, true
	app = app.signed(webhookSecret)
	for name, test := range map[string]struct {
		secret  *pacv1alpha1.Secret
		send    delivery
		status  int
		counted string
	}{
		"the Repository's webhook": {&pacv1alpha1.Secret{Name: "own"}, own, http.StatusAccepted, "recorded/Recorded"},
		"a wrong secret": {&pacv1alpha1.Secret{Name: "own"}, own.signed("guessed"), http.StatusUnauthorized,
			"rejected/Unauthenticated"},
		"the App's secret on its webhook": {&pacv1alpha1.Secret{Name: "own"}, own.signed(webhookSecret),
			http.StatusUnauthorized, "rejected/Unauthenticated"},
		"a Repository without a webhook secret": {nil, own, http.StatusUnauthorized, "rejected/NoWebhookSecret"},
		"the App, for a Repository with a webhook": {&pacv1alpha1.Secret{Name: "own"}, app, http.StatusOK,
			"ignored/ServedByWebhook"},
		"the App, for a Repository without a webhook": {nil, app, http.StatusAccepted, "recorded/Recorded"},
		"the Repository's secret on a delivery of the App": {nil, app.signed(repositorySecret), http.StatusUnauthorized,
			"rejected/Unauthenticated"},
	} {
		t.Run(name, func(t *testing.T) {
			e := webhookEnv(t)
			e.withToken(test.secret)
			e.check(test.status, e.send(e.appAndTokens(), test.send.request()))
			webhookCase{counted: test.counted}.check(t, e)
		})
	}
}

// A signature over the body costs time, so a large body is not tried with each secret of a group.
func TestLargeSignedBodyIsNotTriedWithEachSecretOfTheGroup(t *testing.T) {
	for name, test := range map[string]struct {
		padding, status int
	}{
		"a usual body": {1 << 10, http.StatusOK},
		"a large body": {17 << 20, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			e := webhookEnv(t)
			d := webhookPush(repositorySecret)
			d.service, d.message.URL = service{}, unknownURL
			d.message.Padding = string(make([]byte, test.padding/6)) // JSON writes six bytes for each
			d = d.signed(repositorySecret)
			e.check(test.status, e.send(e.appAndTokens(), d.request()))
		})
	}
}
