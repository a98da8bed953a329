// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// renamedTo replaces a Repository by another one of its namespace.
func (w *env) renamedTo(name string) {
	again := repo("one", name, appURL)
	again.UID = "new-uid"
	w.create(again)
}

// A Repository is deleted, and created with another name and the same URL. Its claim moves at once,
// whichever is reconciled first. A Repository of another namespace with that URL keeps waiting.
func TestClaimMovesWithARenamedRepository(t *testing.T) {
	for name, order := range map[string][]string{
		"the old one is seen first": {"one/app", "two/app", "one/renamed"},
		"the new one is seen first": {"two/app", "one/renamed", "one/app"},
		"created before it is gone": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t, repo("one", "app", appURL), repo("two", "app", appURL))
			w.reconcile("one/app", "two/app")
			if order == nil {
				w.renamedTo("renamed")
				w.reconcile("one/renamed")
				w.wantCondition("one", "renamed", urlCondition, falseClaimed)
				w.delete("one", "app")
				order = []string{"one/app", "one/renamed", "two/app"}
			} else {
				w.delete("one", "app")
				w.renamedTo("renamed")
			}
			w.writes()
			w.reconcile(order...)
			w.wantOwner(appURL, "one/renamed")
			w.wantCondition("one", "renamed", urlCondition, trueOwned)
			w.wantCondition("two", "app", urlCondition, falseClaimed)
			claim := w.claimOf(appURL)
			if claim.Status.ReleasedAt != nil || claim.Spec.Repository.UID != "new-uid" {
				t.Errorf("the claim is %+v", claim)
			}
			if slices.Contains(w.writes(), "delete repositoryclaims") {
				t.Error("the claim was deleted: another namespace may be first")
			}
			w.advance(25 * time.Hour)
			w.reconcile("one/app", "two/app", "one/renamed")
			w.wantOwner(appURL, "one/renamed")
		})
	}
}

// Two Repositories of one namespace swap their URLs.
func TestClaimsMoveWhenURLsAreSwapped(t *testing.T) {
	const other = "https://github.com/acme/other"
	w := newEnv(t, repo("one", "app", appURL), repo("one", "other", other))
	w.reconcile("one/app", "one/other")
	w.setURL("one", "app", other)
	w.setURL("one", "other", appURL)
	w.reconcile("one/app", "one/other", "one/app")
	w.wantOwner(appURL, "one/other")
	w.wantOwner(other, "one/app")
	w.wantCondition("one", "app", urlCondition, trueOwned)
	w.wantCondition("one", "other", urlCondition, trueOwned)
}

// The API server says that the owner exists and names the URL, whatever the cache and the claim
// say.
func TestClaimStaysWithAnExistingOwner(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL))
	w.reconcile("one/app")
	w.renamedTo("copy")
	claim := w.claimOf(appURL)
	claim.Status.ReleasedAt = &metav1.Time{Time: start}
	if _, err := w.client.PlumblineV1alpha1().RepositoryClaims(systemNS).UpdateStatus(t.Context(), claim,
		metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.reconcile("one/copy")
	w.wantOwner(appURL, "one/app")
	w.r.rivals = rivals(cache.NewIndexer(cache.MetaNamespaceKeyFunc, repositoryIndexers())) // an empty cache
	w.reconcile("one/copy")
	w.wantOwner(appURL, "one/app")
	w.wantCondition("one", "copy", urlCondition, falseClaimed)
}

// A claim that another namespace gave up stays for a day, even if that namespace is deleted.
func TestClaimDoesNotMoveToAnotherNamespace(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL), repo("two", "app", appURL), repo("two", "renamed", appURL))
	w.reconcile("one/app", "two/app")
	w.delete("one", "app")
	w.delete("two", "app")
	w.reconcile("one/app", "two/app", "two/renamed")
	w.wantOwner(appURL, "one/app")
	w.wantCondition("two", "renamed", urlCondition, falseClaimed)
}

// While the owner cannot be read, or the claim cannot be written, the condition URL does not
// change.
func TestMovingAClaimIsRetried(t *testing.T) {
	for name, fail := range map[string]func(*env){
		"the owner cannot be read": func(w *env) { w.failOnce("get", "repositories", errors.New("unreachable")) },
		"another writer changed the claim": func(w *env) {
			w.failOnce("update", "repositoryclaims", apierrors.NewConflict(claimResource, "x", nil))
		},
		"the claim is moved, not cleared": func(w *env) {
			w.failOnce("update", "repositoryclaims/status", errors.New("unreachable"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t, repo("one", "app", appURL))
			w.reconcile("one/app")
			w.delete("one", "app")
			w.reconcile("one/app")
			w.renamedTo("renamed")
			w.catchUp()
			fail(w)
			_ = w.r.Reconcile(context.Background(), "one/renamed")
			w.advance(time.Minute)
			w.reconcile("one/app", "one/renamed")
			w.wantOwner(appURL, "one/renamed")
			w.wantCondition("one", "renamed", urlCondition, trueOwned)
			if w.claimOf(appURL).Status.ReleasedAt != nil {
				t.Error("the claim is released")
			}
		})
	}
}

// A proof is of the namespace. The ids of the old Repository do not bind the new one, as for a
// recreated Repository.
func TestMovedClaimKeepsItsProof(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL))
	w.reconcile("one/app")
	claim := w.claimOf(appURL)
	claim.Status.Proven = true
	claim.Status.Bound = &v1alpha1.BoundProject{ProjectIdentity: v1alpha1.ProjectIdentity{ID: 1}, RepositoryUID: "old-uid"}
	if _, err := w.client.PlumblineV1alpha1().RepositoryClaims(systemNS).UpdateStatus(t.Context(), claim,
		metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.delete("one", "app")
	w.renamedTo("renamed")
	w.reconcile("one/app", "one/renamed")
	if claim = w.claimOf(appURL); !claim.Status.Proven || claim.Status.Bound == nil ||
		claim.Status.Bound.RepositoryUID != "old-uid" {
		t.Errorf("the claim is %+v", claim.Status)
	}
}
