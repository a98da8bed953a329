// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/receiver"
)

// failures are what a write can meet (A2).
func failures() map[string]error {
	resource := v1alpha1.Resource("gitevents")
	return map[string]error{
		"429":             apierrors.NewTooManyRequests("later", 7),
		"500":             apierrors.NewInternalError(errors.New("etcdserver: leader changed")),
		"503":             apierrors.NewServiceUnavailable("shutting down"),
		"504":             apierrors.NewTimeoutError("request did not complete", 1),
		"our timeout":     context.DeadlineExceeded,
		"refused":         &url.Error{Op: "Post", URL: "https://10.0.0.1", Err: syscall.ECONNREFUSED},
		"webhook call":    apierrors.NewInternalError(errors.New(`failed calling webhook "x": failed to call webhook: Post "https://x": dial tcp: connect: connection refused`)),
		"denied":          apierrors.NewBadRequest(`admission webhook "x" denied the request: no`),
		"RBAC":            apierrors.NewForbidden(resource, "e", errors.New(`User "x" cannot create resource`)),
		"quota":           apierrors.NewForbidden(resource, "e", errors.New("exceeded quota: q")),
		"invalid":         apierrors.NewInvalid(v1alpha1.Kind("GitEvent"), "e", nil),
		"not served":      apierrors.NewNotFound(resource, ""),
		"an unclassified": errors.New("whatever"),
	}
}

func TestCannotRecord(t *testing.T) { // A2
	for name, answer := range failures() {
		for call, d := range map[string]delivery{"create gitevents": push("k1"), "create gitevents ": large("k1"), "create eventpayloads": large("k1"), "get gitevents": push("k1")} {
			if name == "not served" && call == "get gitevents" {
				continue // is NotFound: the create that follows tells
			}
			t.Run(name+" on "+call, func(t *testing.T) {
				w := newEnv(t)
				call := strings.TrimSpace(call)
				verb, resource, _ := strings.Cut(call, " ")
				w.fail(verb, resource, answer)
				w.expect(http.StatusServiceUnavailable, d)
				w.wantEvents(0)
				if !strings.Contains(w.log(), `"level":"error"`) {
					t.Errorf("the failure is not logged as an error:\n%s", w.log())
				}
				w.client.ReactionChain = w.client.ReactionChain[1:]
				w.expect(http.StatusAccepted, d) // the redelivery is recorded, whatever the failure left behind
				w.wantEvents(1)
			})
		}
	}
}

func TestRetryAfterIsTheServers(t *testing.T) {
	w := newEnv(t)
	w.fail("create", "gitevents", apierrors.NewTooManyRequests("later", 7))
	answer := w.expect(http.StatusServiceUnavailable, push("k1"))
	if got := answer.Result().Header.Get("Retry-After"); got != "7" {
		t.Errorf("Retry-After %q, want the API server's 7", got)
	}
}

func TestForeignObject(t *testing.T) { // A2: 409 with a foreign object
	w := newEnv(t)
	w.expect(http.StatusAccepted, push("k1"))
	other := push("k1")
	other.message.SHA = strings.Repeat("f", 40)
	w.expect(http.StatusServiceUnavailable, other)
	if events := w.wantEvents(1); events[0].Spec.SHA != sha {
		t.Errorf("the record now has SHA %s", events[0].Spec.SHA)
	}
	if w.counted("unavailable", "ForeignEvent") != 1 {
		t.Errorf("not counted:\n%s", w.log())
	}
}

func TestOutcomeUnknown(t *testing.T) { // A2: a create that landed is processed once
	for name, c := range map[string]struct {
		resource string
		err      error
		landed   bool
		status   int
	}{
		"the event landed, the answer timed out":      {"gitevents", apierrors.NewTimeoutError("slow", 1), true, http.StatusAccepted},
		"the event landed, the connection dropped":    {"gitevents", &url.Error{Op: "Post", URL: "x", Err: syscall.ECONNRESET}, true, http.StatusAccepted},
		"the event landed, etcd lost its leader":      {"gitevents", apierrors.NewInternalError(errors.New("etcdserver: leader changed")), true, http.StatusAccepted},
		"the event did not land":                      {"gitevents", context.DeadlineExceeded, false, http.StatusServiceUnavailable},
		"the payload landed, the answer timed out":    {"eventpayloads", apierrors.NewTimeoutError("slow", 1), true, http.StatusAccepted},
		"the payload did not land, the second does":   {"eventpayloads", context.DeadlineExceeded, false, http.StatusAccepted},
		"a denial is final: nothing more is asked of": {"gitevents", apierrors.NewBadRequest(`admission webhook "x" denied the request: no`), false, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.failOnce(c.resource, c.err, c.landed)
			d := push("k1")
			if c.resource == "eventpayloads" {
				d = large("k1")
			}
			w.expect(c.status, d)
			if c.status == http.StatusAccepted {
				w.wantEvents(1)
			}
			w.expect(http.StatusAccepted, d)
			w.wantEvents(1)
		})
	}
}

// failOnce answers the first create of a resource with err, after it was applied if landed.
func (w *env) failOnce(resource string, err error, landed bool) {
	var once sync.Once
	w.client.PrependReactor("create", resource, func(a clienttesting.Action) (handled bool, _ runtime.Object, _ error) {
		once.Do(func() { handled = true })
		if handled && landed {
			create := a.(clienttesting.CreateAction)
			if err := w.client.Tracker().Create(a.GetResource(), create.GetObject(), a.GetNamespace()); err != nil {
				panic(err)
			}
		}
		return handled, nil, err
	})
}

func TestSameDeliveryTwice(t *testing.T) { // A4
	for name, gap := range map[string]time.Duration{"at once": 0, "1 s apart": time.Second, "2 h apart": 2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			h := w.replica()
			w.check(http.StatusAccepted, w.send(h, push("k1").request()))
			w.clock.SetTime(w.clock.Now().Add(gap))
			w.check(http.StatusAccepted, w.send(h, push("k1").request()))
			w.wantEvents(1)
			if w.counted("recorded", "Recorded") != 1 || w.counted("duplicate", "AlreadyRecorded") != 1 {
				t.Errorf("want one recorded and one duplicate:\n%s", w.log())
			}
		})
	}
}

func TestFiftyCopiesOverThreeReplicas(t *testing.T) { // A5
	fiftyCopies(t, push("k1"), 0)
	fiftyCopies(t, large("k1"), 1)
}

func fiftyCopies(t *testing.T, d delivery, stored int) {
	w := newEnv(t)
	replicas := []*receiver.Handler{w.replica(), w.replica(), w.replica()}
	answers := make([]*httptest.ResponseRecorder, 50)
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() { answers[i] = w.send(replicas[i%3], d.request()) })
	}
	wait.Wait()
	for _, answer := range answers {
		w.check(http.StatusAccepted, answer)
	}
	w.wantEvents(1)
	if w.counted("recorded", "Recorded") != 1 || w.counted("duplicate", "AlreadyRecorded") != 49 {
		t.Error("want one recorded and 49 duplicates")
	}
	payloads, err := w.client.PlumblineV1alpha1().EventPayloads(systemNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(payloads.Items) != stored {
		t.Errorf("%d payloads, %v; want %d", len(payloads.Items), err, stored)
	}
}

func TestRedelivery(t *testing.T) {
	for name, c := range map[string]struct {
		status v1alpha1.GitEventStatus
		again  bool
	}{
		"an open event":                           {v1alpha1.GitEventStatus{}, false},
		"an open event that waits for approval":   {v1alpha1.GitEventStatus{Disposition: v1alpha1.DispositionPending}, false},
		"a settled event with runs":               {settled(v1alpha1.DispositionRuns), false},
		"a settled event no pipeline was for":     {settled(v1alpha1.DispositionIgnored), false},
		"a settled event that was refused":        {settled(v1alpha1.DispositionRefused), true},
		"a settled event nobody had approved":     {settled(v1alpha1.DispositionPending), true},
		"a refused event that has runs all along": {withRun(settled(v1alpha1.DispositionRefused), "uid"), false},
		"a refused event whose runs were planned": {withRun(settled(v1alpha1.DispositionRefused), ""), true},
		"an event whose runs were refused":        {withRun(settled(v1alpha1.DispositionRuns), ""), false},
		"a settled event that was superseded":     {settled(v1alpha1.DispositionSuperseded), false},
		"a disposition of a newer version":        {settled("Unheard-of"), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.expect(http.StatusAccepted, large("k1"))
			first := w.settle(0, c.status)
			w.expect(http.StatusAccepted, large("k1"))
			if !c.again {
				w.wantEvents(1)
				return
			}
			events := w.wantEvents(2)
			if events[1].Name != first+"-r1" || events[1].Spec.Payload.Name == events[0].Spec.Payload.Name {
				t.Errorf("second record %s with payload %s", events[1].Name, events[1].Spec.Payload.Name)
			}
			w.expect(http.StatusAccepted, large("k1")) // -r1 is open: recorded already
			w.wantEvents(2)
			w.settle(1, c.status)
			w.expect(http.StatusAccepted, large("k1"))
			if events := w.wantEvents(3); events[2].Name != first+"-r2" {
				t.Errorf("third record %s", events[2].Name)
			}
		})
	}
}

func TestRedeliveryIsBounded(t *testing.T) {
	w := newEnv(t)
	for range 21 {
		w.expect(http.StatusAccepted, push("k1"))
		for i := range w.events() {
			w.settle(i, settled(v1alpha1.DispositionRefused))
		}
	}
	w.expect(http.StatusServiceUnavailable, push("k1"))
	w.wantEvents(21)
	if w.counted("unavailable", "RedeliveryLimit") != 1 {
		t.Error("not counted")
	}
}

func TestRedeliveryOfASettledEventLeavesNoPayload(t *testing.T) {
	w := newEnv(t)
	w.expect(http.StatusAccepted, large("k1"))
	w.settle(0, settled(v1alpha1.DispositionRuns))
	payloads := w.client.PlumblineV1alpha1().EventPayloads(systemNamespace)
	if err := payloads.Delete(t.Context(), w.events()[0].Spec.Payload.Name+"-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.expect(http.StatusAccepted, large("k1"))
	if left, err := payloads.List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) != 0 {
		t.Errorf("%d payloads, %v; want none: nothing would delete them", len(left.Items), err)
	}
}

func settled(d v1alpha1.Disposition) v1alpha1.GitEventStatus {
	return v1alpha1.GitEventStatus{Phase: v1alpha1.PhaseSettled, Disposition: d}
}

func withRun(s v1alpha1.GitEventStatus, uid types.UID) v1alpha1.GitEventStatus {
	s.Runs = []v1alpha1.Run{{Name: "r", UID: uid}}
	return s
}

// settle sets the status of the i-th event and returns its name.
func (w *env) settle(i int, status v1alpha1.GitEventStatus) string {
	w.t.Helper()
	event := w.events()[i]
	event.Status = status
	if _, err := w.client.PlumblineV1alpha1().GitEvents(systemNamespace).UpdateStatus(w.t.Context(), &event, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	return event.Name
}
