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
