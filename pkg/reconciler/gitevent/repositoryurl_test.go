// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// spellings all name the event's repository.
var spellings = map[string]string{
	"with .git":                        "https://git.example/acme/app.git",
	"with a slash at its end":          "https://git.example/acme/app/",
	"with capitals in the host":        "https://Git.Example/acme/app",
	"with capitals in the path":        "https://git.example/Acme/App",
	"with the scheme's own port":       "https://git.example:443/acme/app",
	"with all of that and a user name": "HTTPS://me@GIT.example:443/acme/App.git/",
}

// tokenEnv returns an env whose Git service is reached with a token that the Repository names,
// like a GitLab.
func tokenEnv(t *testing.T) *env {
	t.Helper()
	w := newEnv(t, helloFile("hello"))
	w.git.own = true
	w.must(w.kube.Tracker().Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "token"},
		Data: map[string][]byte{"provider.token": []byte("t")}}))
	w.setURL("https://git.example/acme/app")
	return w
}

// setURL changes spec.url of the Repository, in the cluster and in every cache.
func (w *env) setURL(url string) {
	w.t.Helper()
	w.repository = func(r *pacv1alpha1.Repository) {
		r.Spec.URL = url
		r.Spec.GitProvider = &pacv1alpha1.GitProvider{Type: "gitlab", Secret: &pacv1alpha1.Secret{Name: "token"}}
	}
	changed := repository()
	w.repository(changed)
	w.must(w.own.Tracker().Update(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), changed, tenant))
}

// Another spelling of a Repository's URL does not end what waits, runs or must be reported.
func TestRepositoryURLMayBeSpelledDifferently(t *testing.T) {
	t.Parallel()
	for name, url := range spellings {
		t.Run("a waiting event is planned: "+name, func(t *testing.T) {
			t.Parallel()
			w := tokenEnv(t)
			w.setURL(url)
			_, _ = w.reconcile()
			if e := w.event(); e.Status.Disposition != v1alpha1.DispositionRuns || len(w.runs()) != 1 {
				t.Errorf("disposition %s, plan %+v, want a run", e.Status.Disposition, e.Status.Plan)
			}
		})
		t.Run("a token is renewed: "+name, func(t *testing.T) {
			t.Parallel()
			w := tokenEnv(t)
			for range 3 {
				_, _ = w.reconcile()
			}
			w.setURL(url)
			w.advanceAndReconcile(time.Hour)
			if got := string(w.secret().Data["git-provider-token"]); got != "token-2" {
				t.Errorf("the run's secret holds %q, want the second token; waits %+v", got, w.event().Status.Waits)
			}
		})
		t.Run("a verdict is reported: "+name, func(t *testing.T) {
			t.Parallel()
			w := tokenEnv(t)
			for range 3 {
				_, _ = w.reconcile()
			}
			w.setURL(url)
			w.finishRuns(corev1.ConditionTrue)
			for range 3 {
				w.advanceAndReconcile(6 * time.Minute)
			}
			if diff := cmp.Diff(map[string]status.Conclusion{"hello": status.Success}, w.conclusions()); diff != "" ||
				!w.event().Settled() {
				t.Errorf("settled %t, %s", w.event().Settled(), diff)
			}
		})
	}
}

// Another repository is not the same, however similar its URL.
func TestRepositoryWithAnotherURLIsGone(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"https://git.example/acme/app2", "https://git.example/acme",
		"http://git.example/acme/app", "https://git.example:8443/acme/app", "git.example/acme/app"} {
		w := tokenEnv(t)
		w.setURL(url)
		_, _ = w.reconcile()
		if plan := w.event().Status.Plan; plan == nil || plan.Reason != credentials.ReasonRepositoryGone {
			t.Errorf("%s: plan %+v, want it refused", url, plan)
		}
	}
}
