// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Whatever call fails, is lost, or is the last before the process dies, an unfinished run owns its
// secret, together with the Repository. It takes one call, right after the report of the start.
func TestUnfinishedRunOwnsItsSecret(t *testing.T) {
	t.Parallel()
	free := newEnv(t, helloFile("hello"))
	_, _ = free.reconcile()
	free.wantOwners("repo-uid", free.runs()[0].UID)
	if got := slices.DeleteFunc(slices.Clone(free.calls),
		func(call string) bool { return call != "patch secrets" }); len(got) != 1 {
		t.Errorf("%d patches of secrets, want one: calls %v", len(got), free.calls)
	}
	kinds := map[string]outcome{
		"refused": {err: errRefused}, "conflict": {err: errConflict}, "throttled": {err: errThrottled},
		"applied and the answer lost": {err: errRefused, apply: true}, "killed before": {kill: true},
		"killed after": {kill: true, apply: true},
	}
	for kind, fault := range kinds {
		for k := 1; k <= len(free.calls); k++ {
			t.Run(fmt.Sprintf("%s/call %d %s", kind, k, free.calls[k-1]), func(t *testing.T) {
				t.Parallel()
				w := newEnv(t, helloFile("hello"))
				w.hook = func(n int, _ string) outcome {
					if n == k {
						return fault
					}
					return outcome{}
				}
				for range 4 {
					_, _ = w.reconcile()
					w.advance(time.Minute)
				}
				w.wantOwners("repo-uid", w.runs()[0].UID)
			})
		}
	}
}

// A run that is created while the secret of another one waits for an operator owns its own at once.
func TestRunOwnsItsSecretWhileAnotherWaits(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("a"), helloFile("b"))
	creates := 0
	w.hook = func(_ int, call string) outcome {
		if call == "create pipelineruns" {
			if creates++; creates > 1 {
				return outcome{err: errRefused}
			}
		}
		if call == "patch secrets" {
			return outcome{err: errDenied}
		}
		return outcome{}
	}
	_, _ = w.reconcile()
	waits := w.event().Status.Waits
	if !slices.ContainsFunc(waits, func(wait v1alpha1.Wait) bool {
		return wait.Step == v1alpha1.StepRenew && wait.NotBefore != nil
	}) || len(w.runs()) != 1 {
		t.Fatalf("%d runs, waits %+v", len(w.runs()), waits)
	}
	w.hook = nil
	w.advance(20 * time.Second)
	_, _ = w.reconcile()
	if owned := w.event().Status.Runs[1].SecretOwned; len(w.runs()) != 2 || !owned {
		t.Errorf("%d runs, the new one owns its secret: %v", len(w.runs()), owned)
	}
}

// wantOwners requires that the run's secret has these owners.
func (w *env) wantOwners(want ...types.UID) {
	w.t.Helper()
	var got []types.UID
	for _, owner := range w.secret().OwnerReferences {
		got = append(got, owner.UID)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.t.Errorf("the secret belongs to %v, want %v", got, want)
	}
}

// A secret that somebody deletes, or that is deleted with its Repository, between the creation of
// its run and the patch that makes the run an owner, is recreated at once.
func TestSecretDeletedBeforeItIsOwnedIsRecreated(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.hook = func(_ int, call string) outcome {
		if call == "patch secrets" && len(w.git.tokens) == 1 {
			w.must(w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), tenant,
				w.event().Status.Runs[0].Secret))
		}
		return outcome{}
	}
	_, _ = w.reconcile()
	w.wantOwners("repo-uid", w.runs()[0].UID)
	if got := string(w.secret().Data["git-provider-token"]); got != "token-2" {
		t.Errorf("the secret holds %q", got)
	}
}

// A Repository that is recreated while its run goes on owns the secret from the next renewal on,
// together with the run.
func TestRenewedSecretIsOwnedByTheCurrentRepository(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.repository = func(repository *pacv1alpha1.Repository) { repository.UID = "made-again" }
	w.advance(30 * time.Minute)
	_, _ = w.reconcile()
	w.wantOwners("made-again", w.runs()[0].UID)
}
