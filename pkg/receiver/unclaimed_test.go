// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// A delivery for a Repository whose URL is not claimed yet must be sent again. Once there is a
// claim, the owner is decided, and a delivery for a URL without an owner is ignored.
func TestUnclaimedURL(t *testing.T) {
	const unclaimed, ignored, unowned, recorded = "unavailable/NotClaimedYet", "ignored/NoRepository",
		"rejected/NoRepository", "recorded/Recorded"
	for _, c := range []webhookCase{
		{"a Repository names it", func(e *env) { e.unclaim() }, nil, http.StatusServiceUnavailable, unclaimed},
		{"a Repository spells it differently", func(e *env) {
			e.unclaim()
			e.declare(func(r *pacv1alpha1.Repository) { hooked(r); r.Spec.URL = "HTTPS://Lab.example/Acme/app.git/" })
		}, nil, http.StatusServiceUnavailable, unclaimed},
		{"the delivery is not verified", func(e *env) { e.unclaim() }, func(d *delivery) { d.signature = "none" },
			http.StatusUnauthorized, "rejected/NotClaimedYet"},
		{"the secret that would verify it is missing", func(e *env) {
			e.unclaim()
			e.store("ci", "own", nil)
		}, func(d *delivery) { d.signature = "none" }, http.StatusServiceUnavailable, "unavailable/SecretMissing"},
		{"a Repository names what cannot be claimed", func(e *env) {
			e.unclaim()
			e.declare(func(r *pacv1alpha1.Repository) { r.Spec.URL = webhookURL + "/../app" })
		}, nil, http.StatusUnauthorized, unowned},
		{"only the global Repository exists, without a URL", func(e *env) {
			e.unclaim()
			e.declare(func(r *pacv1alpha1.Repository) { r.Namespace, r.Spec.URL = systemNamespace, "" })
			e.remove("own")
		}, nil, http.StatusUnauthorized, unowned},
		{"it is reserved for a deleted Repository, while another one waits", func(e *env) {
			e.release()
			e.remove("own")
			e.replace(repository("heirs", "app", webhookURL))
		}, nil, http.StatusUnauthorized, unowned},
		{"its owner has another URL now, while another Repository waits", func(e *env) {
			e.declare(func(r *pacv1alpha1.Repository) { hooked(r); r.Spec.URL = "https://lab.example/acme/moved" })
			e.replace(repository("heirs", "app", webhookURL))
		}, nil, http.StatusOK, ignored},
		{"its owner was renamed, and the claim has not moved yet", func(e *env) {
			e.remove("own")
			renamed := repository("ci", "renamed", webhookURL)
			renamed.Spec.GitProvider = &pacv1alpha1.GitProvider{WebhookSecret: &pacv1alpha1.Secret{Name: "own"}}
			e.replace(renamed)
		}, nil, http.StatusServiceUnavailable, unclaimed},
		{"the administrator lists it for others", func(e *env) { e.unclaim(); e.barred = "ci" }, nil, http.StatusOK, ignored},
		{"its owner was renamed, and the administrator lists it for others", func(e *env) {
			e.remove("own")
			renamed := repository("ci", "renamed", webhookURL)
			renamed.Spec.GitProvider = &pacv1alpha1.GitProvider{WebhookSecret: &pacv1alpha1.Secret{Name: "own"}}
			e.replace(renamed)
			e.barred = "ci"
		}, nil, http.StatusOK, ignored},
		{"another Repository has the URL, too", func(e *env) { e.replace(repository("heirs", "app", webhookURL)) }, nil,
			http.StatusAccepted, recorded},
		{"its owner was recreated", func(e *env) { e.declare(recreate) }, nil, http.StatusAccepted, recorded},
		{"its owner was recreated, and the claim is still released", func(e *env) {
			e.release()
			e.declare(recreate)
		}, nil, http.StatusAccepted, recorded},
	} {
		t.Run(c.name, c.try)
	}
}

func TestUnclaimedURLOfTheApp(t *testing.T) {
	t.Run("not claimed yet", func(t *testing.T) {
		e := newEnv(t)
		e.drop(repositoryURL)
		e.expect(http.StatusServiceUnavailable, push("k1"))
		d := push("k1")
		d.signature = "wrong"
		e.expect(http.StatusUnauthorized, d)
		if got := e.counted("unavailable", "NotClaimedYet"); got != 1 {
			t.Errorf("counted %d times", got)
		}
		e.wantEvents(0)
		if err := e.client.Tracker().Add(claim(repositoryURL, "ci", "app")); err != nil {
			t.Fatal(err)
		}
		e.expect(http.StatusAccepted, push("k1"))
		e.wantEvents(1)
	})
	t.Run("the claim has not moved yet", func(t *testing.T) {
		e := newEnv(t)
		e.remove("app")
		e.replace(repository("ci", "renamed", repositoryURL))
		e.expect(http.StatusServiceUnavailable, push("k1"))
		if e.wantEvents(0); e.counted("unavailable", "NotClaimedYet") != 1 {
			t.Errorf("not counted:\n%s", e.log())
		}
	})
}

func recreate(r *pacv1alpha1.Repository) {
	r.UID = "another"
	hooked(r)
}

// hooked sets the webhook secret.
func hooked(r *pacv1alpha1.Repository) {
	r.Spec.GitProvider.WebhookSecret = &pacv1alpha1.Secret{Name: "own"}
}

// unclaim deletes the claim of the Repository ci/own.
func (e *env) unclaim() { e.drop(webhookURL) }

func (e *env) drop(url string) {
	e.t.Helper()
	if err := e.client.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("repositoryclaims"), systemNamespace,
		v1alpha1.ClaimName(url)); err != nil {
		e.t.Fatal(err)
	}
}

// release releases that claim, as the controller does when its Repository was deleted.
func (e *env) release() {
	e.t.Helper()
	given := claim(webhookURL, "ci", "own")
	at := metav1.NewTime(e.clock.Now())
	given.Status.ReleasedAt = &at
	if err := e.client.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("repositoryclaims"), given,
		systemNamespace); err != nil {
		e.t.Fatal(err)
	}
}
