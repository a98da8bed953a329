// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// A delivery for a Repository whose URL no controller has claimed yet has to come again. Once there
// is a claim it is decided whose the URL is, and what is for nobody is no error.
func TestAURLThatNobodyHasClaimedYet(t *testing.T) {
	const unclaimed, ignored, stranger, recorded = "unavailable/NotClaimedYet", "ignored/NoRepository", "rejected/NoRepository", "recorded/Recorded"
	for _, c := range []ownCase{
		{"a Repository names it", func(w *env) { w.unclaim() }, nil, http.StatusServiceUnavailable, unclaimed},
		{"a Repository spells it in another way", func(w *env) {
			w.unclaim()
			w.declare(func(r *pacv1alpha1.Repository) { hooked(r); r.Spec.URL = "HTTPS://Lab.example/Acme/app.git/" })
		}, nil, http.StatusServiceUnavailable, unclaimed},
		{"nobody vouches for the delivery", func(w *env) { w.unclaim() }, func(d *delivery) { d.signature = "none" }, http.StatusUnauthorized, "rejected/NotClaimedYet"},
		{"the secret that would vouch for it is missing", func(w *env) {
			w.unclaim()
			w.store("ci", "own", nil)
		}, func(d *delivery) { d.signature = "none" }, http.StatusServiceUnavailable, "unavailable/SecretMissing"},
		{"a Repository names what cannot be claimed", func(w *env) {
			w.unclaim()
			w.declare(func(r *pacv1alpha1.Repository) { r.Spec.URL = ownURL + "/../app" })
		}, nil, http.StatusUnauthorized, stranger},
		{"only the global Repository is there, without a URL", func(w *env) {
			w.unclaim()
			w.declare(func(r *pacv1alpha1.Repository) { r.Namespace, r.Spec.URL = systemNamespace, "" })
			w.remove("own")
		}, nil, http.StatusUnauthorized, stranger},
		{"it is kept for a Repository that is gone, while another waits", func(w *env) {
			w.release()
			w.remove("own")
			w.replace(repository("heirs", "app", ownURL))
		}, nil, http.StatusUnauthorized, stranger},
		{"its owner has another URL now, while another Repository waits", func(w *env) {
			w.declare(func(r *pacv1alpha1.Repository) { hooked(r); r.Spec.URL = "https://lab.example/acme/moved" })
			w.replace(repository("heirs", "app", ownURL))
		}, nil, http.StatusOK, ignored},
		{"its owner was renamed, and the claim has not moved yet", func(w *env) {
			w.remove("own")
			renamed := repository("ci", "renamed", ownURL)
			renamed.Spec.GitProvider = &pacv1alpha1.GitProvider{WebhookSecret: &pacv1alpha1.Secret{Name: "own"}}
			w.replace(renamed)
		}, nil, http.StatusServiceUnavailable, unclaimed},
		{"the administrator lists it for others", func(w *env) { w.unclaim(); w.barred = "ci" }, nil, http.StatusOK, ignored},
		{"its owner was renamed, and the administrator lists it for others", func(w *env) {
			w.remove("own")
			renamed := repository("ci", "renamed", ownURL)
			renamed.Spec.GitProvider = &pacv1alpha1.GitProvider{WebhookSecret: &pacv1alpha1.Secret{Name: "own"}}
			w.replace(renamed)
			w.barred = "ci"
		}, nil, http.StatusOK, ignored},
		{"another Repository has lost it", func(w *env) { w.replace(repository("heirs", "app", ownURL)) }, nil, http.StatusAccepted, recorded},
		{"its owner was made again", func(w *env) { w.declare(madeAgain) }, nil, http.StatusAccepted, recorded},
		{"its owner was made again, and the claim does not know yet", func(w *env) {
			w.release()
			w.declare(madeAgain)
		}, nil, http.StatusAccepted, recorded},
	} {
		t.Run(c.name, c.try)
	}
	t.Run("of a GitHub App", func(t *testing.T) {
		w := newEnv(t)
		w.drop(repositoryURL)
		w.expect(http.StatusServiceUnavailable, push("k1"))
		d := push("k1")
		d.signature = "a stranger's"
		w.expect(http.StatusUnauthorized, d)
		if got := w.counted("unavailable", "NotClaimedYet"); got != 1 {
			t.Errorf("counted %d times", got)
		}
		w.wantEvents(0)
		if err := w.client.Tracker().Add(claim(repositoryURL, "ci", "app")); err != nil {
			t.Fatal(err)
		}
		w.expect(http.StatusAccepted, push("k1"))
		w.wantEvents(1)
	})
	t.Run("of a GitHub App, renamed", func(t *testing.T) {
		w := newEnv(t)
		w.remove("app")
		w.replace(repository("ci", "renamed", repositoryURL))
		w.expect(http.StatusServiceUnavailable, push("k1"))
		if w.wantEvents(0); w.counted("unavailable", "NotClaimedYet") != 1 {
			t.Errorf("not counted:\n%s", w.log())
		}
	})
}

func madeAgain(r *pacv1alpha1.Repository) {
	r.UID = "another"
	hooked(r)
}

// hooked names the webhook's secret.
func hooked(r *pacv1alpha1.Repository) {
	r.Spec.GitProvider.WebhookSecret = &pacv1alpha1.Secret{Name: "own"}
}

// unclaim takes away the claim of the second service's Repository.
func (w *env) unclaim() { w.drop(ownURL) }

func (w *env) drop(url string) {
	w.t.Helper()
	if err := w.client.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("repositoryclaims"), systemNamespace, v1alpha1.ClaimName(url)); err != nil {
		w.t.Fatal(err)
	}
}

// release gives that claim up, as the controller does when its Repository is gone.
func (w *env) release() {
	w.t.Helper()
	given := claim(ownURL, "ci", "own")
	at := metav1.NewTime(w.clock.Now())
	given.Status.ReleasedAt = &at
	if err := w.client.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("repositoryclaims"), given, systemNamespace); err != nil {
		w.t.Fatal(err)
	}
}
