// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"strings"
	"testing"
)

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
