// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

// calls returns verb and resource of every call since the last time. It leaves out lists, which are
// the caches'.
func (w *env) calls() []string {
	var all []string
	for _, action := range w.client.Actions() {
		if action.GetVerb() != "list" {
			all = append(all, action.GetVerb()+" "+action.GetResource().Resource)
		}
	}
	w.client.ClearActions()
	return all
}

func TestUnchangedRepositoryCostsNoCall(t *testing.T) {
	t.Parallel()
	w := newEnv(t, repo("one", "app", appURL))
	w.reconcile("one/app")
	if got, want := w.calls(), []string{"create repositoryclaims", "update repositories"}; !slices.Equal(got, want) {
		t.Errorf("a new Repository costs %q, want %q", got, want)
	}
	w.reconcile("one/app", "one/app")
	w.restart()
	w.reconcile("one/app")
	if got := w.calls(); len(got) > 0 {
		t.Errorf("a Repository that is as it should be costs %q", got)
	}
}

// A write of the status wakes the key, and so does the claim, before the cache has the new status.
func TestStatusIsNotWrittenOverAReplacedVersion(t *testing.T) {
	t.Parallel()
	w := newEnv(t, repo("one", "app", appURL))
	w.catchUp()
	for range 3 {
		if err := w.r.Reconcile(context.Background(), "one/app"); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := w.calls(), []string{"create repositoryclaims", "update repositories"}; !slices.Equal(got, want) {
		t.Errorf("three reconciles with a cache that is behind cost %q, want %q", got, want)
	}
	w.setURL("one", "app", appURL+"-2")
	w.reconcile("one/app")
	w.wantOwner(appURL+"-2", "one/app")
	if len(w.r.replaced.versions) != 1 {
		t.Errorf("%d versions are remembered of one Repository", len(w.r.replaced.versions))
	}
	w.delete("one", "app")
	w.reconcile("one/app")
	if len(w.r.replaced.versions) != 0 {
		t.Error("a version of a Repository that is gone is remembered")
	}
}

// In the cache the Repository has another URL, but it has changed back.
func TestStaleCacheReleasesNoClaim(t *testing.T) {
	t.Parallel()
	w := newEnv(t, repo("one", "app", appURL))
	w.reconcile("one/app")
	w.catchUp()
	elsewhere := w.repository("one", "app").DeepCopy()
	elsewhere.Spec.URL = appURL + "-2"
	if err := w.r.repositories.Update(elsewhere); err != nil {
		t.Fatal(err)
	}
	if err := w.r.Reconcile(context.Background(), "one/app"); err != nil {
		t.Fatal(err)
	}
	if claim := w.claimOf(appURL); claim == nil || claim.Status.ReleasedAt != nil {
		t.Errorf("the claim of the URL that it has is %+v", claim)
	}
	if claim := w.claimOf(appURL + "-2"); claim != nil {
		t.Error("the URL that it does not have is claimed")
	}
}

// The watch of Repositories hangs. A Repository that has changed its URL does not claim the old one
// when its claim is deleted, which would keep it from the next owner for a day.
func TestStaleCacheClaimsNothing(t *testing.T) {
	t.Parallel()
	w := newEnv(t, repo("one", "app", appURL))
	w.reconcile("one/app")
	w.catchUp()
	before := w.repository("one", "app").DeepCopy()
	// the fake API server counts no generations
	if before.Status.ObservedGeneration = 1; w.r.repositories.Update(before) != nil {
		t.Fatal("the cache takes nothing")
	}
	claim := w.claimOf(appURL)
	if err := w.client.PlumblineV1alpha1().RepositoryClaims(systemNS).Delete(t.Context(), claim.Name,
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.r.claims.Delete(claim); err != nil {
		t.Fatal(err)
	}
	w.setURL("one", "app", appURL+"-2")
	w.restart()
	if err := w.r.Reconcile(t.Context(), "one/app"); err != nil {
		t.Fatal(err)
	}
	if claim := w.claimOf(appURL); claim != nil {
		t.Errorf("the URL that it has left is claimed: %+v", claim.Spec)
	}
	w.wantOwner(appURL+"-2", "one/app")
}

// Its claim is released when the cache has caught up.
func TestDeletedRepositoryInTheCacheIsReleased(t *testing.T) {
	t.Parallel()
	w := newEnv(t, repo("one", "app", appURL))
	w.reconcile("one/app")
	w.delete("one", "app")
	if err := w.r.Reconcile(context.Background(), "one/app"); err != nil {
		t.Fatal(err)
	}
	w.reconcile("one/app")
	if claim := w.claimOf(appURL); claim == nil || claim.Status.ReleasedAt == nil {
		t.Errorf("the claim of a Repository that is gone is %+v", claim)
	}
}

func TestFirstStartWithManyRepositories(t *testing.T) {
	t.Parallel()
	const many = 300
	w := newEnv(t)
	var keys []string
	for n := range many {
		name := fmt.Sprint("app-", n)
		if _, err := w.client.PipelinesascodeV1alpha1().Repositories("one").Create(context.Background(),
			repo("one", name, fmt.Sprint(appURL, n)), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, "one/"+name)
	}
	w.catchUp()
	w.calls()
	for _, key := range keys {
		if err := w.r.Reconcile(context.Background(), key); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(w.calls()); got != 2*many {
		t.Errorf("%d calls for %d Repositories, want two each", got, many)
	}
	w.wantCondition("one", "app-7", pacv1alpha1.RepositoryURL, trueOwned)
}
