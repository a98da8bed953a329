// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/claim"
)

const (
	falseUnproven = "False " + v1alpha1.ReasonNotProven
	falseAnother  = "False " + v1alpha1.ReasonAnotherRepository
)

// claimStatus changes the status of a claim, as the planning of an event does.
func (w *env) claimStatus(url string, change func(*v1alpha1.RepositoryClaimStatus)) {
	w.Helper()
	claim := w.claimOf(url)
	change(&claim.Status)
	if _, err := w.client.PlumblineV1alpha1().RepositoryClaims(systemNS).UpdateStatus(context.Background(), claim,
		metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

func TestConditionReportsAnotherRepositoryAtTheService(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL))
	w.reconcile("one/app")
	w.claimStatus(appURL, func(s *v1alpha1.RepositoryClaimStatus) {
		s.Bound = &v1alpha1.BoundProject{
			ProjectIdentity: v1alpha1.ProjectIdentity{ID: 41, OwnerID: 7}, RepositoryUID: "one-app",
		}
		s.Refused = &v1alpha1.BoundProject{
			ProjectIdentity: v1alpha1.ProjectIdentity{ID: 43, OwnerID: 9}, RepositoryUID: "one-app",
		}
	})
	w.reconcile("one/app")
	w.wantCondition("one", "app", urlCondition, falseAnother)
	w.wantCondition("one", "app", ready, falseAnother)
	message := w.repository("one", "app").Status.GetCondition(urlCondition).Message
	for _, words := range []string{"7/41", "9/43", "kubectl annotate", plumbline.RepositoryIDAnnotation + "=9/43"} {
		if !strings.Contains(message, words) {
			t.Errorf("%q does not say %q", message, words)
		}
	}
	r := w.repository("one", "app")
	r.Annotations = map[string]string{plumbline.RepositoryIDAnnotation: "9/43"}
	if _, err := w.client.PipelinesascodeV1alpha1().Repositories("one").Update(context.Background(), r,
		metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.reconcile("one/app")
	w.wantCondition("one", "app", urlCondition, trueOwned)
}

func TestConditionReportsAMissingProof(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL))
	w.configure(map[string]string{"url-owners": "{}"})
	w.reconcile("one/app")
	w.wantOwner(appURL, "one/app") // its next event may prove it
	w.wantCondition("one", "app", urlCondition, falseUnproven)
	if message := w.repository("one", "app").Status.GetCondition(urlCondition).Message; !strings.Contains(message,
		claim.ProofFile) {
		t.Errorf("%q does not say what to do", message)
	}
	w.claimStatus(appURL, func(s *v1alpha1.RepositoryClaimStatus) { s.Proven = true })
	w.reconcile("one/app")
	w.wantCondition("one", "app", urlCondition, trueOwned)
	w.configure(map[string]string{"url-owners": "oops"})
	w.reconcile("one/app")
	w.wantCondition("one", "app", urlCondition, "False BadURLOwners")
	w.wantOwner(appURL, "one/app")
	w.configure(nil)
	w.reconcile("one/app")
	w.wantCondition("one", "app", urlCondition, trueOwned)
}

func TestListedURLBelongsToItsNamespace(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL))
	w.reconcile("one/app")
	w.configure(map[string]string{"url-owners": "two: ['https://github.com/acme/*']"})
	w.reconcile("one/app")
	w.wantCondition("one", "app", urlCondition, falseUnproven)
	if claim := w.claimOf(appURL); claim.Status.ReleasedAt == nil {
		t.Error("a namespace without a right to the URL keeps it")
	}
	w.create(repo("two", "app", appURL))
	w.reconcile("two/app", "one/app", "two/app")
	w.wantOwner(appURL, "two/app")
	w.wantCondition("two", "app", urlCondition, trueOwned)
	w.wantCondition("one", "app", urlCondition, falseUnproven)
	if message := w.repository("one", "app").Status.GetCondition(urlCondition).Message; strings.Contains(message, "two") {
		t.Errorf("%q names another tenant", message)
	}
}

func TestURLListedForTwoNamespacesStaysWithTheFirst(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL), repo("two", "app", appURL))
	w.configure(map[string]string{"url-owners": "two: ['https://github.com/*']\none: ['https://github.com/acme/*']"})
	w.reconcile("one/app", "two/app", "one/app", "two/app")
	w.wantOwner(appURL, "one/app")
	w.wantCondition("two", "app", urlCondition, falseClaimed)
}

// No Repository keeps a URL without a proof, however many name it. None with a proof loses it.
func TestUnprovenURLGoesFromNamespaceToNamespace(t *testing.T) {
	w := newEnv(t, repo("one", "a", appURL), repo("one", "b", appURL), repo("two", "app", appURL))
	w.configure(map[string]string{"url-owners": "{}"})
	all := []string{"one/a", "one/b", "two/app"}
	w.reconcile("one/a")
	w.reconcile(all...)
	w.wantOwner(appURL, "one/a")
	w.advance(claim.HandoverAfter - time.Second)
	w.wakes = nil
	w.reconcile(all...)
	w.wantOwner(appURL, "one/a")
	if len(w.wakes) != 1 || w.wakes[0] != time.Second {
		t.Errorf("wakes after %v, want the second that is left", w.wakes)
	}
	w.advance(time.Second)
	w.reconcile("one/b", "two/app") // one/b is of the namespace that had its turn
	w.reconcile(all...)
	w.wantOwner(appURL, "two/app")
	w.wantCondition("one", "a", urlCondition, falseClaimed)
	w.claimStatus(appURL, func(s *v1alpha1.RepositoryClaimStatus) { s.Proven = true })
	w.advance(10 * claim.HandoverAfter)
	w.reconcile(all...)
	w.wantOwner(appURL, "two/app")
	w.configure(nil)
	w.claimStatus(appURL, func(s *v1alpha1.RepositoryClaimStatus) { s.Proven = false })
	w.reconcile(all...)
	w.wantOwner(appURL, "two/app")
}

// When proofs become required, or one event lacks a proof, the Repository keeps its URL for an
// hour. The hour is cancelled when the URL is listed or proven again.
func TestURLHasAnHourForItsProof(t *testing.T) {
	for name, begins := range map[string]struct{ before, then func(w *env) }{
		"the setting is new": {func(*env) {}, func(w *env) { w.configure(map[string]string{"url-owners": "{}"}) }},
		"the file was deleted": {
			func(w *env) {
				w.configure(map[string]string{"url-owners": "{}"})
				w.claimStatus(appURL, func(s *v1alpha1.RepositoryClaimStatus) { s.Proven = true })
			},
			func(w *env) {
				w.claimStatus(appURL, func(s *v1alpha1.RepositoryClaimStatus) { s.Proven = false })
			},
		},
		"it was listed": {
			func(w *env) {
				w.configure(map[string]string{"url-owners": "{}"})
				w.reconcile("two/app")
				w.advance(time.Minute)
				w.configure(map[string]string{"url-owners": "one: ['https://github.com/acme/*']"})
			},
			func(w *env) { w.configure(map[string]string{"url-owners": "{}"}) },
		},
		"the setting could not be read": {
			func(w *env) {
				w.configure(map[string]string{"url-owners": "{}"})
				w.reconcile("two/app")
				w.advance(time.Minute)
				w.configure(map[string]string{"url-owners": "oops"})
			},
			func(w *env) { w.configure(map[string]string{"url-owners": "{}"}) },
		},
	} {
		w := newEnv(t, repo("one", "app", appURL), repo("two", "app", appURL))
		w.reconcile("one/app")
		begins.before(w)
		w.reconcile("one/app", "two/app")
		w.advance(10 * claim.HandoverAfter)
		begins.then(w)
		w.reconcile("two/app", "two/app")
		w.wantOwner(appURL, "one/app")
		w.advance(claim.HandoverAfter)
		w.reconcile("two/app")
		w.wantOwner(appURL, "two/app")
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// A Repository without a proof cannot reserve its URL for a day by being deleted within its hour.
func TestReleasedUnprovenURLIsHandedOver(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL), repo("two", "app", appURL))
	w.configure(map[string]string{"url-owners": "{}"})
	w.reconcile("one/app", "two/app")
	w.delete("one", "app")
	w.reconcile("one/app", "two/app")
	w.wantOwner(appURL, "one/app")
	w.advance(claim.HandoverAfter)
	w.reconcile("two/app")
	w.wantOwner(appURL, "two/app")
}
