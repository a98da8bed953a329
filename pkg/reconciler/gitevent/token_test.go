// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/settle"
)

// minted returns all tokens that were minted.
func (w *env) minted() []string {
	var values []string
	for _, token := range w.git.tokens {
		values = append(values, token.Value)
	}
	return values
}

// S28: each run has its own token, also after renewals, and when the event settles all of them are
// revoked. The status has none of them.
func TestEachRunHasItsOwnTokenUntilTheEventSettles(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("one"), helloFile("two"))
	for range 3 {
		_, _ = w.reconcile()
	}
	if n := len(w.git.tokens); n != 2 {
		t.Fatalf("%d tokens for two runs", n)
	}
	if diff := cmp.Diff(map[string]string{"contents": "read", "metadata": "read"}, w.git.permissions); diff != "" {
		t.Error(diff)
	}
	w.advance(31 * time.Minute)
	_, _ = w.reconcile()
	if n := len(w.git.tokens); n != 4 || len(w.git.revoked) != 0 {
		t.Fatalf("after a renewal %d tokens, and %v are revoked while pods may use them", n, w.git.revoked)
	}
	w.settle(corev1.ConditionTrue)
	slices.Sort(w.git.revoked)
	if diff := cmp.Diff(w.minted(), w.git.revoked); diff != "" {
		t.Errorf("minted and revoked: %s", diff)
	}
	for _, value := range w.minted() {
		if strings.Contains(fmt.Sprintf("%+v", w.event()), value) {
			t.Errorf("the event tells %s", value)
		}
	}
}

// Whatever call fails or is the last before the process dies, a token that was minted and written
// into a secret is revoked.
func TestTokensAreRevokedDespiteAnyFailedCall(t *testing.T) {
	t.Parallel()
	free := newEnv(t, helloFile("hello"))
	free.settle(corev1.ConditionTrue)
	for kind, fault := range map[string]outcome{"refused": {err: errRefused},
		"applied and the answer lost": {err: errRefused, apply: true}, "killed after": {kill: true, apply: true}} {
		for k := range free.calls {
			w := newEnv(t, helloFile("hello"))
			held := map[string]bool{}
			w.hook = func(n int, name string) outcome {
				if n == k+1 {
					return fault
				}
				return outcome{}
			}
			w.watchSecrets(held)
			w.settle(corev1.ConditionTrue)
			for value := range held {
				if !slices.Contains(w.git.revoked, value) {
					t.Errorf("%s at call %d %s: %s was in a secret and is not revoked; calls %v", kind, k+1, free.calls[k], value,
						w.calls)
				}
			}
		}
	}
}

// watchSecrets records each token that a git-auth secret holds before a call.
func (w *env) watchSecrets(held map[string]bool) {
	inner := w.hook
	w.hook = func(n int, name string) outcome {
		obj, err := w.kube.Tracker().List(corev1.SchemeGroupVersion.WithResource("secrets"),
			corev1.SchemeGroupVersion.WithKind("Secret"), tenant)
		if list, ok := obj.(*corev1.SecretList); err == nil && ok {
			for _, secret := range list.Items {
				if value := secret.Data["git-provider-token"]; len(value) > 0 {
					held[string(value)] = true
				}
			}
		}
		return inner(n, name)
	}
}

// A Git service that cannot revoke delays settling for minutes, not for longer; the secret is
// deleted anyway.
func TestFailedRevocationDoesNotDelaySettling(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err   error
		waits bool
	}{
		"down":                          {fault.Transientf("GitServiceUnavailable", "502"), true},
		"limited for a moment":          {fault.Throttledf(fault.ReasonRateLimited, 10*time.Second, "later"), true},
		"limited for an hour":           {fault.Throttledf(fault.ReasonRateLimited, time.Hour, "much later"), false},
		"something an operator fixes":   {fault.Operatorf(fault.ReasonPermissionMissing, "suspended"), false},
		"a mistake, which it cannot be": {fault.Invalidf("Odd", "what"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := running(t)
			w.hook = always("revoke token", test.err)
			w.finishRuns(corev1.ConditionTrue)
			_, _ = w.reconcile()
			if settled := w.event().Settled(); settled == test.waits {
				t.Fatalf("settled at once: %t", settled)
			}
			for spent := time.Duration(0); !w.event().Settled(); spent += 20 * time.Second {
				if spent > settle.RevokeLimit+time.Minute {
					t.Fatalf("open for %v", spent)
				}
				w.advance(20 * time.Second)
				_, _ = w.reconcile()
			}
			if n := w.secrets(); n != 1 {
				t.Errorf("%d secrets are left, want the App's", n)
			}
			w.wantSuccess()
		})
	}
}

// Upgrade: an older version shared its token among runs and itself. It is not revoked, and a
// renewal gives the run its own.
func TestSharedTokenOfAnOlderVersionIsNotRevoked(t *testing.T) {
	t.Parallel()
	for _, renewed := range []bool{false, true} {
		w := running(t)
		secret := w.secret()
		delete(secret.Annotations, plumbline.TokenAnnotation)
		secret.Data["git-provider-token"] = []byte("shared")
		w.must(w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("secrets"), secret, tenant))
		w.kill() // the process of the version before
		var want []string
		if renewed {
			w.advance(30 * time.Minute)
			_, _ = w.reconcile()
			want = []string{"token-2"}
		}
		w.settle(corev1.ConditionTrue)
		if diff := cmp.Diff(want, w.git.revoked); diff != "" {
			t.Errorf("renewed %t: %s", renewed, diff)
		}
	}
}

// A cluster that accepts no PipelineRun, or no Secret, for a while does not cost a token at each
// attempt.
func TestRetriesDoNotMintAgain(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"create pipelineruns", "create secrets"} {
		w := newEnv(t, helloFile("hello"))
		w.hook = always(call, errRefused)
		for range 8 {
			_, _ = w.reconcile()
			w.advance(2 * time.Minute)
		}
		if n := w.count(call); n < 3 {
			t.Fatalf("%s was tried %d times", call, n)
		}
		w.hook = nil
		for range 3 {
			_, _ = w.reconcile()
			w.advance(time.Minute)
		}
		if n := len(w.git.tokens); n != 1 || len(w.runs()) != 1 {
			t.Errorf("%s fails: %d tokens for %d runs", call, n, len(w.runs()))
		}
	}
}

// The permissions that a Repository asks for are granted as far as the administrator allows, to its
// own code. The check says which are not.
func TestRunTokenPermissions(t *testing.T) {
	t.Parallel()
	asked := map[string]pacv1alpha1.PermissionLevel{"pull_requests": "write", "checks": "write"}
	for name, test := range map[string]struct {
		change func(e *v1alpha1.GitEvent)
		want   map[string]string
	}{
		"a push": {func(*v1alpha1.GitEvent) {}, map[string]string{"pull_requests": "write"}},
		"a pull request of a fork": {
			func(e *v1alpha1.GitEvent) { e.Spec.PullRequest = &v1alpha1.PullRequest{Number: 1, HeadProjectID: 99} }, nil,
		},
		"a command on a commit": {func(e *v1alpha1.GitEvent) {
			e.Spec.Comment, e.Status.Plan.Ref = &v1alpha1.Comment{ID: 9}, "refs/heads/main"
		}, map[string]string{"pull_requests": "write"}},
		"a re-run of a push": {func(e *v1alpha1.GitEvent) {
			e.Spec.Rerun, e.Status.Plan.Ref = &v1alpha1.Rerun{AppID: 1}, "refs/heads/main"
		}, map[string]string{"pull_requests": "write"}},
		"a re-run of a pull request, which may be a fork's": {
			func(e *v1alpha1.GitEvent) { e.Spec.Rerun = &v1alpha1.Rerun{AppID: 1} }, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, helloFile("hello"))
			w.settings = map[string]string{"run-token-permissions": "pull_requests: write"}
			w.repository = func(r *pacv1alpha1.Repository) {
				r.Spec.Settings = &pacv1alpha1.Settings{RunTokenPermissions: asked}
			}
			for range 2 {
				_, _ = w.reconcile()
			}
			w.edit(test.change)
			w.advance(31 * time.Minute)
			_, _ = w.reconcile()
			want := map[string]string{"contents": "read", "metadata": "read"}
			maps.Copy(want, test.want)
			if diff := cmp.Diff(want, w.git.permissions); diff != "" {
				t.Error(diff)
			}
			if text := w.git.checks["1"].Text; !strings.Contains(text, "does not allow checks: write") {
				t.Errorf("the check says %q", text)
			}
		})
	}
}

// inheritSettings makes the env's Repository use the token of the global one.
func (w *env) inheritSettings() {
	w.git.own = true
	w.repository = func(r *pacv1alpha1.Repository) { r.Spec.GitProvider = &pacv1alpha1.GitProvider{Type: "fake"} }
	w.must(w.own.Tracker().Add(&pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "pipelines-as-code"},
		Spec: pacv1alpha1.RepositorySpec{
			GitProvider: &pacv1alpha1.GitProvider{Secret: &pacv1alpha1.Secret{Name: "all"}},
		},
	}))
	w.must(w.kube.Tracker().Add(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "all"}, Data: map[string][]byte{"provider.token": []byte("t")},
	}))
}

// S29: the global Repository's token is in no tenant's namespace unless the administrator says so.
func TestGlobalTokenReachesNoTenant(t *testing.T) {
	t.Parallel()
	for _, share := range []bool{false, true} {
		for _, uses := range []bool{false, true} {
			w := newEnv(t, helloFile("hello"))
			if uses {
				w.git.files[0].Data = bytes.Replace(w.git.files[0].Data, []byte("  name: hello\n"),
					[]byte("  name: hello\n  labels: {auth: \"{{ git_auth_secret }}\"}\n"), 1)
			}
			w.settings = map[string]string{"share-global-token": fmt.Sprint(share)}
			w.inheritSettings()
			for range 3 {
				_, _ = w.reconcile()
			}
			if n := len(w.runs()); n != 1 {
				t.Fatalf("shared %t: %d runs, waits %+v", share, n, w.event().Status.Waits)
			}
			_, err := w.kube.Tracker().Get(corev1.SchemeGroupVersion.WithResource("secrets"), tenant,
				w.runs()[0].Annotations["pipelinesascode.tekton.dev/git-auth-secret"])
			if (err == nil) != share || (len(w.git.tokens) == 1) != share {
				t.Errorf("shared %t: the secret: %v, %d tokens", share, err, len(w.git.tokens))
			}
			if text := w.git.checks["1"].Text; strings.Contains(text, "There is no git-auth secret") != (uses && !share) {
				t.Errorf("shared %t, needed %t: the check says %q", share, uses, text)
			}
			w.settle(corev1.ConditionTrue)
		}
	}
}
