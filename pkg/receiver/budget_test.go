// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
)

func (w *world) payloads() int {
	w.t.Helper()
	list, err := w.client.PlumblineV1alpha1().EventPayloads(systemNamespace).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return len(list.Items)
}

// S5: past a budget a delivery is answered 503, writes nothing and is counted. A copy of a recorded
// one is answered as before.
func TestADeliveryPastTheBudgetIsNotRecorded(t *testing.T) {
	for reason, c := range map[string]struct{ scope, says string }{
		quota.ReasonRepository: {"repository", "the open events of this Repository have used up their budget"},
		quota.ReasonNamespace:  {"namespace", "the open events of the Repository's namespace have"},
		quota.ReasonTotal:      {"total", "the open events of this installation have"},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			w.limits.Events = 20 // 2 for the Repository, 5 for its namespace
			w.expect(http.StatusAccepted, large("k1"))
			for i := range map[string]int{quota.ReasonRepository: 1, quota.ReasonNamespace: 4, quota.ReasonTotal: 19}[reason] {
				repository := map[string]string{quota.ReasonRepository: "ci/app", quota.ReasonNamespace: "ci/other", quota.ReasonTotal: fmt.Sprint("tenant-", i, "/app")}[reason]
				seen := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("e", i),
					Annotations: map[string]string{"plumbline.dev/repository": repository, "plumbline.dev/stored-bytes": "1"}}}
				w.budget.Watched(seen)
			}
			answer := w.expect(http.StatusServiceUnavailable, push("k2"))
			if !strings.Contains(answer.Body.String(), c.says) || answer.Result().Header.Get("Retry-After") != "300" {
				t.Errorf("answered %s, Retry-After %s", answer.Body, answer.Result().Header.Get("Retry-After"))
			}
			if w.counted("unavailable", reason) != 1 || w.sum("plumbline.receiver.over_budget", map[string]string{"scope": c.scope}) != 1 {
				t.Error("not counted")
			}
			if w.wantEvents(1); w.payloads() != 1 {
				t.Errorf("%d payloads, want the first one's", w.payloads())
			}
			w.expect(http.StatusAccepted, large("k1"))
			w.budget.Deleted(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "e0"}})
			w.expect(http.StatusAccepted, push("k2"))
			w.wantEvents(2)
		})
	}
}

// Whoever writes comments on one pull request while events stay open uses up that pull request's
// share, and nobody else's.
func TestOnePullRequestLeavesTheOthersTheirDeliveries(t *testing.T) {
	w := newWorld(t)
	of := func(key string, pull int64) delivery {
		d := push(key)
		d.message.Pull = pull
		return d
	}
	w.limits.Events = 400 // 40 for the Repository, 10 for a pull request
	for i := range 10 {
		w.expect(http.StatusAccepted, of(fmt.Sprint("comment-", i), 1))
	}
	answer := w.expect(http.StatusServiceUnavailable, of("comment-10", 1))
	if says := "the open events of this pull request have used up their budget"; !strings.Contains(answer.Body.String(), says) {
		t.Errorf("answered %s", answer.Body)
	}
	over := w.sum("plumbline.receiver.over_budget", map[string]string{"scope": "pull_request"})
	if w.counted("unavailable", quota.ReasonPull) != 1 || over != 1 {
		t.Error("not counted")
	}
	w.expect(http.StatusAccepted, of("another", 2))
	w.expect(http.StatusAccepted, push("a-push"))
	w.wantEvents(12)
}

// Receivers read from an event's metadata what it uses.
func TestAnEventSaysWhatItUses(t *testing.T) {
	w := newWorld(t)
	w.expect(http.StatusAccepted, push("k1"))
	small := w.wantEvents(1)[0]
	if got, want := small.Annotations["plumbline.dev/stored-bytes"], fmt.Sprint((len(small.Payload)+2)/3*4); got != want {
		t.Errorf("an event with its payload says %q, want %q", got, want)
	}
	w = newWorld(t)
	w.expect(http.StatusAccepted, large("k1"))
	event := w.wantEvents(1)[0]
	payload, err := w.client.PlumblineV1alpha1().EventPayloads(systemNamespace).Get(t.Context(), event.Spec.Payload.Name+"-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"plumbline.dev/repository": "ci/app", "plumbline.dev/stored-bytes": fmt.Sprint((len(payload.Data) + 2) / 3 * 4)}
	for name, value := range want {
		if event.Annotations[name] != value {
			t.Errorf("%s is %q, want %q", name, event.Annotations[name], value)
		}
	}
}

// While events cannot be created their payloads are, and stay for an hour: they fill no more than
// the budget.
func TestPayloadsWithoutEventsKeepToTheBudget(t *testing.T) {
	w := newWorld(t)
	w.limits.Bytes = 5_000_000 // a tenth for the Repository; a payload takes some 70,000
	w.fail("create", "gitevents", apierrors.NewForbidden(v1alpha1.Resource("gitevents"), "e", errors.New("exceeded quota: plumbline, requested: count/gitevents.plumbline.dev=1, used: count/gitevents.plumbline.dev=7, limited: count/gitevents.plumbline.dev=7")))
	for i := range 50 {
		w.expect(http.StatusServiceUnavailable, large(fmt.Sprint("k", i)))
	}
	if n := w.payloads(); n < 2 || n > 15 {
		t.Errorf("%d payloads without an event, want what 500,000 bytes hold", n)
	}
	if w.counted("unavailable", "QuotaExceeded") == 0 || w.counted("unavailable", quota.ReasonRepository) == 0 {
		t.Error("both reasons should be counted")
	}
}

// Of a payload of several objects some may be there when another is refused. They count as long as
// they are there.
func TestPartsOfPayloadsKeepToTheBudget(t *testing.T) {
	w := newWorld(t)
	w.limits.Bytes = 20 << 20 // 2 MiB for the Repository
	w.client.PrependReactor("create", "eventpayloads", func(a clienttesting.Action) (bool, runtime.Object, error) {
		payload := a.(clienttesting.CreateAction).GetObject().(*v1alpha1.EventPayload)
		return strings.HasSuffix(payload.Name, "-2"), nil, apierrors.NewForbidden(v1alpha1.Resource("eventpayloads"), payload.Name, errors.New("exceeded quota: plumbline"))
	})
	noise := make([]byte, 700_000) // three objects
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	for i := range 10 {
		d := push(fmt.Sprint("k", i))
		d.message.Padding = fmt.Sprint(i) + base64.StdEncoding.EncodeToString(noise)
		w.expect(http.StatusServiceUnavailable, d)
	}
	if n := w.payloads(); n < 4 || n > 10 { // two of some 350 KB each for a delivery
		t.Errorf("%d parts of payloads, want what 2 MiB hold", n)
	}
	if w.counted("unavailable", quota.ReasonRepository) == 0 {
		t.Error("the budget is never used up")
	}
}

// A payload that cannot be created leaves nothing that counts.
func TestWhatCouldNotBeWrittenUsesNoBudget(t *testing.T) {
	w := newWorld(t)
	w.limits.Events = 20
	w.fail("create", "eventpayloads", apierrors.NewServiceUnavailable("shutting down"))
	for i := range 5 {
		w.expect(http.StatusServiceUnavailable, large(fmt.Sprint("k", i)))
	}
	w.client.ReactionChain = w.client.ReactionChain[1:]
	w.expect(http.StatusAccepted, push("k9"))
	w.expect(http.StatusAccepted, push("k8"))
}

// API servers that count a quota at once answer 409 to some creates: nobody is told of it.
func TestAConflictOfTheQuotaIsTriedAgain(t *testing.T) {
	for _, resource := range []string{"eventpayloads", "gitevents"} {
		w, conflicts := newWorld(t), 0
		w.client.PrependReactor("create", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			conflicts++
			return conflicts < 4, nil, apierrors.NewConflict(v1alpha1.Resource("resourcequotas"), "plumbline", errors.New("the object has been modified"))
		})
		w.expect(http.StatusAccepted, large("k1"))
		w.wantEvents(1)
	}
}
