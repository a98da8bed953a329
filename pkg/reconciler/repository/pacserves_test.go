// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/authz/claim"
)

// A Repository that Pipelines-as-Code serves has no claim. A user of a served namespace must not
// get its deliveries by another spelling of its URL, which the webhook of Pipelines-as-Code
// accepts.
func TestURLOfPipelinesAsCodeIsNotClaimed(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL+".git"), repo("two", "app", appURL))
	w.configure(map[string]string{"serve-namespaces": "one", "pipelines-as-code-url": "http://pac:8080"})
	w.catchUp()
	if err := w.r.Reconcile(t.Context(), "one/app"); w.claimOf(appURL) != nil {
		t.Fatalf("the URL is claimed: %v", err)
	}
	condition := w.repository("one", "app").Status.GetCondition(urlCondition)
	if !condition.IsFalse() || condition.Reason != reasonClaimed || !strings.Contains(condition.Message, "two/app") {
		t.Errorf("%+v", condition)
	}
	w.configure(map[string]string{"serve-namespaces": "one, two", "pipelines-as-code-url": "http://pac:8080"})
	w.reconcile("two/app", "one/app")
	w.wantOwner(appURL, "two/app")
	w.configure(map[string]string{"serve-namespaces": "two", "pipelines-as-code-url": "http://pac:8080"})
	w.restart()
	w.reconcile("two/app")
	w.wantCondition("two", "app", urlCondition, trueOwned) // what is claimed stays
}

// While both are served, the older Repository gets the URL, whichever is reconciled first: the
// newer one may have waited for the move.
func TestURLGoesToTheRepositoryThatPipelinesAsCodeServed(t *testing.T) {
	newer, older := repo("one", "app", appURL+".git"), repo("two", "app", appURL)
	older.CreationTimestamp, newer.CreationTimestamp = metav1.NewTime(start), metav1.NewTime(start.Add(time.Hour))
	w := newEnv(t, newer, older)
	w.configure(map[string]string{"serve-namespaces": "one, two", "pipelines-as-code-url": "http://pac:8080"})
	w.catchUp()
	_ = w.r.Reconcile(t.Context(), "one/app") // it is woken again
	w.reconcile("two/app")
	w.wantOwner(appURL, "two/app")
}

// Where proofs are required, an older Repository without one does not keep the URL from the next.
func TestOlderRepositoryWithoutProofKeepsNoURL(t *testing.T) {
	newer, older := repo("one", "app", appURL), repo("two", "app", appURL)
	older.CreationTimestamp, newer.CreationTimestamp = metav1.NewTime(start), metav1.NewTime(start.Add(time.Hour))
	w := newEnv(t, newer, older)
	w.configure(map[string]string{
		"serve-namespaces": "one, two", "pipelines-as-code-url": "http://pac:8080", "url-owners": "{}",
	})
	w.reconcile("two/app", "one/app")
	w.wantOwner(appURL, "two/app")
	w.advance(claim.HandoverAfter)
	w.reconcile("one/app")
	w.wantOwner(appURL, "one/app")
}

// A Repository of Pipelines-as-Code that the administrator's list bars from the URL does not keep
// others from it.
func TestBarredRepositoryKeepsNoURL(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL), repo("two", "app", appURL+".git"))
	w.configure(map[string]string{
		"serve-namespaces": "one", "pipelines-as-code-url": "http://pac:8080", "url-owners": "one: [" + appURL + "]",
	})
	w.reconcile("one/app")
	w.wantOwner(appURL, "one/app")
}

// At the start the cache may lack the claim. It is the owner's anyway.
func TestClaimThatTheCacheLacksStays(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL), repo("two", "app", appURL+".git"), claimed(appURL, "one", "app", nil))
	w.configure(map[string]string{"serve-namespaces": "one", "pipelines-as-code-url": "http://pac:8080"})
	w.catchUp()
	w.must(w.r.claims.Replace(nil, ""))
	_ = w.r.Reconcile(t.Context(), "one/app") // it may have timers
	w.wantCondition("one", "app", urlCondition, trueOwned)
}

// The owner of a Repository that returns to Pipelines-as-Code reads who serves it.
func TestLeftNamespaceIsServedByPipelinesAsCode(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL))
	w.reconcile("one/app")
	w.configure(map[string]string{"serve-namespaces": "!one", "pipelines-as-code-url": "http://pac:8080"})
	w.reconcile("one/app")
	condition := w.repository("one", "app").Status.GetCondition(urlCondition)
	if !condition.IsFalse() || !strings.HasPrefix(condition.Message, "Pipelines-as-Code serves namespace one") {
		t.Errorf("%+v", condition)
	}
}

// Of several such Repositories the condition always names the same one: each change of its message
// wakes the Repository again, which would never end.
func TestConditionNamesTheSameRivalInEachAttempt(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL), repo("f", "app", appURL), repo("b", "app", appURL),
		repo("e", "app", appURL), repo("d", "app", appURL), repo("c", "app", appURL))
	w.configure(map[string]string{"serve-namespaces": "one", "pipelines-as-code-url": "http://pac:8080"})
	w.reconcile("one/app")
	w.wantCondition("one", "app", urlCondition, falseClaimed)
	w.writes()
	for range 10 {
		w.reconcile("one/app")
	}
	if writes := w.writes(); len(writes) != 0 {
		t.Errorf("nothing changed, but wrote %v: %+v", writes, w.repository("one", "app").Status.GetCondition(urlCondition))
	}
}
