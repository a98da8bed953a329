// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/receiver"
)

const (
	webhookURL       = "https://lab.example/acme/app"
	repositorySecret = "the-secret-of-one-repository"
	globalSecret     = "the-secret-of-all-repositories"
)

// webhookEnv is an env with a second service, whose Repositories name their own webhook secrets:
// the Repository ci/own has the Secret ci/own.
func webhookEnv(t *testing.T) *env {
	e := newEnv(t)
	e.store("ci", "own", map[string]string{"webhook.secret": repositorySecret + "\n"})
	e.declare(func(r *pacv1alpha1.Repository) { r.Spec.GitProvider.WebhookSecret = &pacv1alpha1.Secret{Name: "own"} })
	if err := e.client.Tracker().Add(claim(webhookURL, "ci", "own")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if all := e.log(); strings.Contains(all, repositorySecret) || strings.Contains(all, globalSecret) {
			t.Errorf("a log line or an answer contains a secret:\n%s", all)
		}
	})
	return e
}

// declare replaces the Repository ci/own.
func (e *env) declare(change func(*pacv1alpha1.Repository)) {
	e.t.Helper()
	r := repository("ci", "own", webhookURL)
	r.Spec.GitProvider = &pacv1alpha1.GitProvider{Type: "own", Secret: &pacv1alpha1.Secret{Name: "own"}}
	change(r)
	e.replace(r)
}

// global creates the global Repository with a token and the webhook's secret.
func (e *env) global(url string) {
	e.t.Helper()
	r := repository(systemNamespace, "global", "https://lab.example/global")
	r.Spec.GitProvider = &pacv1alpha1.GitProvider{
		URL: url, Secret: &pacv1alpha1.Secret{Name: "all"}, WebhookSecret: &pacv1alpha1.Secret{Name: "all", Key: "hook"},
	}
	e.replace(r)
	e.store(systemNamespace, "all", map[string]string{"hook": globalSecret})
}

func (e *env) replace(r *pacv1alpha1.Repository) {
	e.t.Helper()
	repositories := e.client.PipelinesascodeV1alpha1().Repositories(r.Namespace)
	_ = repositories.Delete(e.t.Context(), r.Name, metav1.DeleteOptions{}) // it may be missing
	if _, err := repositories.Create(e.t.Context(), r, metav1.CreateOptions{}); err != nil {
		e.t.Fatal(err)
	}
}

// store replaces a Secret, which the controllers copy at once.
func (e *env) store(namespace, name string, data map[string]string) {
	e.copied[namespace+"/"+name] = data
}

// both returns a replica that serves the App's service and the one with webhooks.
func (e *env) both() *receiver.Handler {
	h := e.replica()
	h.Providers = append(h.Providers, provider.Provider{Name: "own", Webhook: service{name: "Own"}, BaseURL: baseURL})
	h.Services = receiver.Services{
		Global: receiver.GlobalOf(e.cached, receiver.LiveView(e.client, systemNamespace, 0), systemNamespace, "global"),
		Copies: e.copies(),
	}
	return h
}

// baseURL is what a Repository configures, or the host of its URL.
func baseURL(configured, repositoryURL string, _ v1alpha1.Project) string {
	if configured != "" {
		return configured
	}
	return strings.TrimSuffix(repositoryURL, "/acme/app")
}

func webhookPush(secret string) delivery {
	d := delivery{
		service: service{name: "Own"}, event: "push", key: "own-1",
		message: message{URL: webhookURL, SHA: sha, Host: "lab.example", Padding: bodyMarker},
	}
	return d.signed(secret)
}

func (d delivery) signed(secret string) delivery {
	d.signature = sign(mustBody(d), []byte(secret))
	return d
}

type webhookCase struct {
	name    string
	arrange func(*env)
	send    func(*delivery)
	status  int
	// counted as "<outcome>/<reason>"
	counted string
}

func (c webhookCase) try(t *testing.T) {
	e := webhookEnv(t)
	d := webhookPush(repositorySecret)
	if c.arrange != nil {
		c.arrange(e)
	}
	if c.send != nil {
		c.send(&d)
	}
	e.check(c.status, e.send(e.both(), d.request()))
	c.check(t, e)
}

// check looks for the outcome in the metrics and the store.
func (c webhookCase) check(t *testing.T, e *env) {
	outcome, reason, _ := strings.Cut(c.counted, "/")
	if e.counted(outcome, reason) != 1 {
		t.Errorf("not counted as %s:\n%s", c.counted, e.log())
	}
	stored := 0
	if outcome == "recorded" {
		stored = 1
	}
	e.wantEvents(stored)
	payloads, err := e.client.PlumblineV1alpha1().EventPayloads("").List(t.Context(), metav1.ListOptions{})
	if err != nil || (stored == 0 && len(payloads.Items) != 0) {
		t.Errorf("%d payloads are stored for a delivery that was not accepted, %v", len(payloads.Items), err)
	}
}

// signedBy changes the delivery's message and signs it with the Repository's secret again.
func signedBy(secret string, change func(*delivery)) func(*delivery) {
	return func(d *delivery) {
		change(d)
		*d = d.signed(secret)
	}
}

// failGlobal makes the API server fail for the global Repository alone.
func (e *env) failGlobal(err error) {
	e.client.PrependReactor("get", "repositories", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.GetNamespace() == systemNamespace, nil, err
	})
}
