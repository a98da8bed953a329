// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"net/http"
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
	ownURL       = "https://lab.example/acme/app"
	ownSecret    = "the-secret-of-one-repository"
	globalSecret = "the-secret-of-all-repositories"
)

// webhookEnv is a env with a second service, whose Repositories name their own secrets: "own" has
// its Secret of that name.
func webhookEnv(t *testing.T) *env {
	w := newEnv(t)
	w.store("ci", "own", map[string]string{"webhook.secret": ownSecret + "\n"})
	w.declare(func(r *pacv1alpha1.Repository) { r.Spec.GitProvider.WebhookSecret = &pacv1alpha1.Secret{Name: "own"} })
	if err := w.client.Tracker().Add(claim(ownURL, "ci", "own")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if all := w.log(); strings.Contains(all, ownSecret) || strings.Contains(all, globalSecret) {
			t.Errorf("a log line or an answer holds a secret:\n%s", all)
		}
	})
	return w
}

// declare replaces the Repository by one that change completes.
func (w *env) declare(change func(*pacv1alpha1.Repository)) {
	w.t.Helper()
	r := repository("ci", "own", ownURL)
	r.Spec.GitProvider = &pacv1alpha1.GitProvider{Type: "own", Secret: &pacv1alpha1.Secret{Name: "own"}}
	change(r)
	w.replace(r)
}

// global creates the global Repository with a token and the webhook's secret.
func (w *env) global(url string) {
	w.t.Helper()
	r := repository(systemNamespace, "global", "https://lab.example/global")
	r.Spec.GitProvider = &pacv1alpha1.GitProvider{URL: url, Secret: &pacv1alpha1.Secret{Name: "all"}, WebhookSecret: &pacv1alpha1.Secret{Name: "all", Key: "hook"}}
	w.replace(r)
	w.store(systemNamespace, "all", map[string]string{"hook": globalSecret})
}

func (w *env) replace(r *pacv1alpha1.Repository) {
	w.t.Helper()
	repositories := w.client.PipelinesascodeV1alpha1().Repositories(r.Namespace)
	_ = repositories.Delete(w.t.Context(), r.Name, metav1.DeleteOptions{}) // it need not be there
	if _, err := repositories.Create(w.t.Context(), r, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// store replaces a Secret, and the controllers copy it at once.
func (w *env) store(namespace, name string, data map[string]string) {
	w.copied[namespace+"/"+name] = data
}

// both returns a replica that serves an App's service and one of Repositories' own.
func (w *env) both() *receiver.Handler {
	h := w.replica()
	h.Providers = append(h.Providers, provider.Provider{Name: "own", Webhook: service{name: "Own"}, BaseURL: baseURL})
	h.Services = receiver.Services{
		Global: receiver.GlobalOf(w.cached, receiver.LiveView(w.client, systemNamespace, 0), systemNamespace, "global"),
		Copies: w.copies(),
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

func ownPush(secret string) delivery {
	d := delivery{
		service: service{name: "Own"}, event: "push", key: "own-1",
		message: message{URL: ownURL, SHA: sha, Host: "lab.example", Padding: bodyMarker},
	}
	return d.signed(secret)
}

func (d delivery) signed(secret string) delivery {
	d.signature = sign(mustBody(d), []byte(secret))
	return d
}

type ownCase struct {
	name    string
	arrange func(*env)
	send    func(*delivery)
	status  int
	// counted as "<outcome>/<reason>"
	counted string
}

func (c ownCase) try(t *testing.T) {
	w := webhookEnv(t)
	d := ownPush(ownSecret)
	if c.arrange != nil {
		c.arrange(w)
	}
	if c.send != nil {
		c.send(&d)
	}
	w.check(c.status, w.send(w.both(), d.request()))
	outcome, reason, _ := strings.Cut(c.counted, "/")
	if w.counted(outcome, reason) != 1 {
		t.Errorf("not counted as %s:\n%s", c.counted, w.log())
	}
	stored := 0
	if c.status == http.StatusAccepted {
		stored = 1
	}
	w.wantEvents(stored)
	payloads, err := w.client.PlumblineV1alpha1().EventPayloads("").List(t.Context(), metav1.ListOptions{})
	if err != nil || (stored == 0 && len(payloads.Items) != 0) {
		t.Errorf("%d payloads are stored of a delivery that was not accepted, %v", len(payloads.Items), err)
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
func (w *env) failGlobal(err error) {
	w.client.PrependReactor("get", "repositories", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.GetNamespace() == systemNamespace, nil, err
	})
}
