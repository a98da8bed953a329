// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

var claimResource = schema.GroupResource{Group: "plumbline.dev", Resource: "repositoryclaims"}

func TestFirstClaimWins(t *testing.T) {
	for name, order := range map[string][]string{
		"one first": {"one/app", "two/app"},
		"two first": {"two/app", "one/app"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t, repo("one", "app", appURL), repo("two", "app", "https://GitHub.com/Acme/App.git/"))
			w.reconcile(order...)
			w.wantOwner(appURL, order[0])
			first, second := order[0][:3], order[1][:3]
			w.wantCondition(first, "app", urlCondition, trueOwned)
			w.wantCondition(first, "app", ready, "True ")
			w.wantCondition(second, "app", urlCondition, falseClaimed)
			w.wantCondition(second, "app", ready, falseClaimed)
			message := w.repository(second, "app").Status.GetCondition(urlCondition).Message
			if want := appURL + " belongs to Repository " + order[0] + ", "; !strings.HasPrefix(message, want) {
				t.Errorf("got message %q, want it to start with %q", message, want)
			}
			w.writes()
			w.reconcile(order[1], order[0])
			if got := w.writes(); len(got) != 0 {
				t.Errorf("nothing changed, but wrote %v", got)
			}
		})
	}
}

func TestTwoRepositoriesOfOneNamespace(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL), repo("one", "copy", appURL))
	w.reconcile("one/app", "one/copy")
	w.wantCondition("one", "app", urlCondition, trueOwned)
	w.wantCondition("one", "copy", urlCondition, falseClaimed)
}

// The read finds no claim, and another process creates it first.
func TestConcurrentClaimsAreDecidedByTheAPIServer(t *testing.T) {
	for name, test := range map[string]struct {
		first *v1alpha1.RepositoryClaim
		want  string
	}{
		"another Repository was faster":                  {claimed(appURL, "two", "app", nil), falseClaimed},
		"we were faster: a create whose answer was lost": {claimed(appURL, "one", "app", nil), trueOwned},
		"a claim of ours that was released is taken up again": {
			claimed(appURL, "one", "app", &metav1.Time{Time: start}), trueOwned,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t, repo("one", "app", appURL))
			w.client.PrependReactor("create", "repositoryclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
				if err := w.client.Tracker().Add(test.first); err != nil {
					return true, nil, err
				}
				return true, nil, apierrors.NewAlreadyExists(claimResource, test.first.Name)
			})
			w.reconcile("one/app")
			w.wantCondition("one", "app", urlCondition, test.want)
			if claim := w.claimOf(appURL); claim.Status.ReleasedAt != nil {
				t.Errorf("claim is still released: %+v", claim.Status)
			}
		})
	}
}

func TestClaimThatVanishesIsRetried(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL))
	w.failOnce("create", "repositoryclaims", apierrors.NewAlreadyExists(claimResource, "x"))
	err := w.r.Reconcile(context.Background(), "one/app")
	if !fault.Is(err, fault.Transient) {
		t.Fatalf("got %v, want a transient error", err)
	}
	if w.repository("one", "app").Status.GetCondition(urlCondition) != nil {
		t.Error("nothing is known of the URL yet, but the condition is set")
	}
	w.reconcile("one/app")
	w.wantCondition("one", "app", urlCondition, trueOwned)
}

func TestClaimOutlivesItsRepositoryByADay(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL))
	w.reconcile("one/app")
	w.delete("one", "app")
	if after := w.reconcile("one/app"); after != 24*time.Hour {
		t.Errorf("wakes after %v, want a day", after)
	}
	w.create(repo("two", "app", appURL))
	w.advance(24*time.Hour - time.Second)
	if after := w.reconcile("two/app", "one/app"); after != time.Second {
		t.Errorf("wakes after %v, want the second that is left", after)
	}
	w.wantOwner(appURL, "one/app")
	w.wantCondition("two", "app", urlCondition, falseClaimed)
	message := w.repository("two", "app").Status.GetCondition(urlCondition).Message
	if want := appURL + " belonged to Repository one/app and is kept for it for a day."; !strings.HasPrefix(message,
		want) {
		t.Errorf("got message %q, want it to start with %q", message, want)
	}

	w.advance(time.Second)
	w.reconcile("one/app")
	if claim := w.claimOf(appURL); claim != nil {
		t.Fatalf("the claim is still there after a day: %+v", claim)
	}
	w.reconcile("two/app")
	w.wantOwner(appURL, "two/app")
	w.wantCondition("two", "app", urlCondition, trueOwned)
}

func TestRecreatedRepositoryKeepsItsClaim(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL), repo("two", "app", appURL))
	w.reconcile("one/app", "two/app")
	w.delete("one", "app")
	w.reconcile("one/app", "two/app")
	w.advance(23 * time.Hour)
	again := repo("one", "app", appURL)
	again.UID = "another"
	w.create(again)
	w.reconcile("one/app")
	w.advance(2 * time.Hour)
	w.reconcile("one/app", "two/app")
	w.wantOwner(appURL, "one/app")
	w.wantCondition("one", "app", urlCondition, trueOwned)
	w.wantCondition("two", "app", urlCondition, falseClaimed)
	if claim := w.claimOf(appURL); claim.Status.ReleasedAt != nil {
		t.Errorf("claim is still released: %+v", claim.Status)
	}
}

func TestChangeOfURLReleasesTheOldClaim(t *testing.T) {
	const other = "https://github.com/acme/other"
	w := newEnv(t, repo("one", "app", appURL))
	w.reconcile("one/app")
	w.setURL("one", "app", other)
	if after := w.reconcile("one/app"); after != 24*time.Hour {
		t.Errorf("wakes after %v, want a day", after)
	}
	w.wantOwner(other, "one/app")
	if claim := w.claimOf(appURL); claim.Status.ReleasedAt == nil || !claim.Status.ReleasedAt.Time.Equal(start) {
		t.Errorf("old claim: %+v, want it released now", claim.Status)
	}
	w.setURL("one", "app", "https://github.com/") // no URL of a repository: every claim is given up
	w.reconcile("one/app")
	w.wantCondition("one", "app", urlCondition, "False "+reasonInvalidURL)
	if claim := w.claimOf(other); claim.Status.ReleasedAt == nil {
		t.Error("the second claim is not released")
	}
	w.setURL("one", "app", appURL)
	w.reconcile("one/app")
	if claim := w.claimOf(appURL); claim.Status.ReleasedAt != nil {
		t.Errorf("changed back, but still released: %+v", claim.Status)
	}
	w.advance(24 * time.Hour)
	w.reconcile("one/app")
	w.wantOwner(appURL, "one/app")
	if claim := w.claimOf(other); claim != nil {
		t.Errorf("the second claim is still there after a day: %+v", claim)
	}
}

func TestDeletionInTheCacheIsConfirmedLive(t *testing.T) {
	t.Run("another's claim that is in the cache but gone does not deny the URL", func(t *testing.T) {
		w := newEnv(t, repo("one", "app", appURL))
		if err := w.r.claims.Add(claimed(appURL, "two", "app", nil)); err != nil {
			t.Fatal(err)
		}
		if err := w.r.Reconcile(context.Background(), "one/app"); err != nil {
			t.Fatal(err)
		}
		w.wantCondition("one", "app", urlCondition, trueOwned)
		w.wantOwner(appURL, "one/app")
	})
	t.Run("our claim that is in the cache but another's by now is not touched", func(t *testing.T) {
		w := newEnv(t, claimed(appURL, "two", "app", nil))
		if err := w.r.claims.Add(claimed(appURL, "one", "app", &metav1.Time{Time: start.Add(-48 * time.Hour)})); err != nil {
			t.Fatal(err)
		}
		if err := w.r.Reconcile(context.Background(), "one/app"); err != nil {
			t.Fatal(err)
		}
		if got := w.writes(); len(got) != 0 {
			t.Errorf("wrote %v, want nothing", got)
		}
	})
	t.Run("a claim that was taken up again is not deleted on the cache's word", func(t *testing.T) {
		w := newEnv(t, claimed(appURL, "one", "app", nil))
		if err := w.r.claims.Add(claimed(appURL, "one", "app", &metav1.Time{Time: start.Add(-48 * time.Hour)})); err != nil {
			t.Fatal(err)
		}
		if err := w.r.Reconcile(context.Background(), "one/app"); err == nil {
			t.Fatal("got no timer for the claim that was just released")
		}
		if diff := cmp.Diff([]string{"update repositoryclaims/status"}, w.writes()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
	for sentence, err := range map[string]error{
		"cannot be read": errors.New("connection refused"),
		"is of a kind that is not served": apierrors.NewGenericServerResponse(404, "get", claimResource, "",
			"404 page not found", 0, true),
	} {
		t.Run("a Repository that "+sentence+" keeps its claim", func(t *testing.T) {
			w := newEnv(t, claimed(appURL, "one", "app", nil))
			w.catchUp()
			w.failOnce("get", "repositories", err)
			if err := w.r.Reconcile(context.Background(), "one/app"); err == nil {
				t.Fatal("got no error and no timer")
			}
			if got := w.writes(); len(got) != 0 {
				t.Errorf("wrote %v, want nothing", got)
			}
		})
	}
}

func TestDeletionHasPreconditions(t *testing.T) {
	w := newEnv(t, claimed(appURL, "one", "app", &metav1.Time{Time: start.Add(-24 * time.Hour)}))
	w.catchUp()
	w.client.ClearActions()
	if err := w.r.Reconcile(context.Background(), "one/app"); err != nil {
		t.Fatal(err)
	}
	var got *metav1.Preconditions
	for _, action := range w.client.Actions() {
		if deletion, ok := action.(clienttesting.DeleteAction); ok {
			got = deletion.GetDeleteOptions().Preconditions
		}
	}
	if got == nil || *got.UID != "claim-uid" || *got.ResourceVersion != "11" {
		t.Errorf("got preconditions %+v, want uid and resource version of what was read", got)
	}
}

func TestConflictOnAClaimEndsTheReconcile(t *testing.T) {
	for name, verb := range map[string]string{"marking": "update", "deleting": "delete"} {
		t.Run(name, func(t *testing.T) {
			released := &metav1.Time{Time: start.Add(-24 * time.Hour)}
			if verb == "update" {
				released = nil
			}
			w := newEnv(t, claimed(appURL, "one", "app", released))
			w.catchUp()
			w.failOnce(verb, "repositoryclaims", apierrors.NewConflict(claimResource, "x", errors.New("modified")))
			if err := w.r.Reconcile(context.Background(), "one/app"); !apierrors.IsConflict(err) ||
				!fault.Is(err, fault.Conflict) {
				t.Fatalf("got %v, want the conflict", err)
			}
			if got := w.writes(); len(got) != 1 {
				t.Errorf("wrote %v, want one attempt", got)
			}
		})
	}
}
