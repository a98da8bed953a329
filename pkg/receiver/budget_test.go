// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
)

func (e *env) payloads() int {
	e.t.Helper()
	list, err := e.client.PlumblineV1alpha1().EventPayloads(systemNamespace).List(e.t.Context(), metav1.ListOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	return len(list.Items)
}

// S5: a delivery over the budget is answered 503, writes nothing and is counted. A copy of a
// recorded delivery is still answered 202.
func TestDeliveryOverTheBudgetIsNotRecorded(t *testing.T) {
	for reason, c := range map[string]struct{ scope, says string }{
		quota.ReasonRepository: {"repository", "the unsettled events of this Repository have exhausted their budget"},
		quota.ReasonNamespace:  {"namespace", "the unsettled events of the Repository's namespace have"},
		quota.ReasonTotal:      {"total", "the unsettled events of this installation have"},
	} {
		t.Run(reason, func(t *testing.T) {
			e := newEnv(t)
			e.limits.Events = 20 // 2 for the Repository, 5 for its namespace
			e.expect(http.StatusAccepted, large("k1"))
			for i := range map[string]int{quota.ReasonRepository: 1, quota.ReasonNamespace: 4, quota.ReasonTotal: 19}[reason] {
				repository := map[string]string{quota.ReasonRepository: "ci/app", quota.ReasonNamespace: "ci/other",
					quota.ReasonTotal: fmt.Sprint("tenant-", i, "/app")}[reason]
				seen := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("e", i),
					Annotations: map[string]string{"plumbline.dev/repository": repository, "plumbline.dev/stored-bytes": "1"}}}
				e.budget.Watched(seen)
			}
			answer := e.expect(http.StatusServiceUnavailable, push("k2"))
			if !strings.Contains(answer.Body.String(), c.says) || answer.Result().Header.Get("Retry-After") != "300" {
				t.Errorf("answered %s, Retry-After %s", answer.Body, answer.Result().Header.Get("Retry-After"))
			}
			if e.counted("unavailable", reason) != 1 ||
				e.sum("plumbline.receiver.over_budget", map[string]string{"scope": c.scope}) != 1 {
				t.Error("not counted")
			}
			if e.wantEvents(1); e.payloads() != 1 {
				t.Errorf("%d payloads, want the first one's", e.payloads())
			}
			e.expect(http.StatusAccepted, large("k1"))
			e.budget.Deleted(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "e0"}})
			e.expect(http.StatusAccepted, push("k2"))
			e.wantEvents(2)
		})
	}
}

// A user who comments on one pull request while events stay unsettled exhausts the budget of that
// pull request only.
func TestPullRequestBudgetAffectsOnePullRequest(t *testing.T) {
	e := newEnv(t)
	of := func(key string, pull int64) delivery {
		d := push(key)
		d.message.Pull = pull
		return d
	}
	e.limits.Events = 400 // 40 for the Repository, 10 for a pull request
	for i := range 10 {
		e.expect(http.StatusAccepted, of(fmt.Sprint("comment-", i), 1))
	}
	answer := e.expect(http.StatusServiceUnavailable, of("comment-10", 1))
	if says := "the unsettled events of this pull request have exhausted their budget"; !strings.Contains(
		answer.Body.String(), says) {
		t.Errorf("answered %s", answer.Body)
	}
	over := e.sum("plumbline.receiver.over_budget", map[string]string{"scope": "pull_request"})
	if e.counted("unavailable", quota.ReasonPull) != 1 || over != 1 {
		t.Error("not counted")
	}
	e.expect(http.StatusAccepted, of("another", 2))
	e.expect(http.StatusAccepted, push("a-push"))
	e.wantEvents(12)
}
