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

// failures are the errors of a write (A2).
func failures() map[string]error {
	resource := v1alpha1.Resource("gitevents")
	return map[string]error{
		"429":         apierrors.NewTooManyRequests("later", 7),
		"500":         apierrors.NewInternalError(errors.New("etcdserver: leader changed")),
		"503":         apierrors.NewServiceUnavailable("shutting down"),
		"504":         apierrors.NewTimeoutError("request did not complete", 1),
		"our timeout": context.DeadlineExceeded,
		"refused":     &url.Error{Op: "Post", URL: "https://10.0.0.1", Err: syscall.ECONNREFUSED},
		"webhook call": apierrors.NewInternalError(errors.New(
			`failed calling webhook "x": failed to call webhook: Post "https://x": dial tcp: connect: connection refused`)),
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
		for call, d := range map[string]delivery{"create gitevents": push("k1"), "create gitevents ": large("k1"),
			"create eventpayloads": large("k1"), "get gitevents": push("k1")} {
			if name == "not served" && call == "get gitevents" {
				continue // NotFound, so the create follows, which fails in another case
			}
			t.Run(name+" on "+call, func(t *testing.T) {
				e := newEnv(t)
				call := strings.TrimSpace(call)
				verb, resource, _ := strings.Cut(call, " ")
				e.fail(verb, resource, answer)
				e.expect(http.StatusServiceUnavailable, d)
				e.wantEvents(0)
				if !strings.Contains(e.log(), `"level":"error"`) {
					t.Errorf("the failure is not logged as an error:\n%s", e.log())
				}
				e.client.ReactionChain = e.client.ReactionChain[1:]
				e.expect(http.StatusAccepted, d) // the redelivery is recorded, whatever the failure left behind
				e.wantEvents(1)
			})
		}
	}
}

func TestRetryAfterIsTheServers(t *testing.T) {
	e := newEnv(t)
	e.fail("create", "gitevents", apierrors.NewTooManyRequests("later", 7))
	answer := e.expect(http.StatusServiceUnavailable, push("k1"))
	if got := answer.Result().Header.Get("Retry-After"); got != "7" {
		t.Errorf("Retry-After %q, want the API server's 7", got)
	}
}

func TestForeignObject(t *testing.T) { // A2: 409 with a foreign object
	e := newEnv(t)
	e.expect(http.StatusAccepted, push("k1"))
	other := push("k1")
	other.message.SHA = strings.Repeat("f", 40)
	e.expect(http.StatusServiceUnavailable, other)
	if events := e.wantEvents(1); events[0].Spec.SHA != sha {
		t.Errorf("the record now has SHA %s", events[0].Spec.SHA)
	}
	if e.counted("unavailable", "ForeignEvent") != 1 {
		t.Errorf("not counted:\n%s", e.log())
	}
}

func TestSameDeliveryTwice(t *testing.T) { // A4
	for name, gap := range map[string]time.Duration{"at once": 0, "1 s apart": time.Second, "2 h apart": 2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			h := e.replica()
			e.check(http.StatusAccepted, e.send(h, push("k1").request()))
			e.clock.SetTime(e.clock.Now().Add(gap))
			e.check(http.StatusAccepted, e.send(h, push("k1").request()))
			e.wantEvents(1)
			if e.counted("recorded", "Recorded") != 1 || e.counted("duplicate", "AlreadyRecorded") != 1 {
				t.Errorf("want one recorded and one duplicate:\n%s", e.log())
			}
		})
	}
}

func TestFiftyCopiesOverThreeReplicas(t *testing.T) { // A5
	fiftyCopies(t, push("k1"), 0)
	fiftyCopies(t, large("k1"), 1)
}

func fiftyCopies(t *testing.T, d delivery, stored int) {
	e := newEnv(t)
	replicas := []*receiver.Handler{e.replica(), e.replica(), e.replica()}
	answers := make([]*httptest.ResponseRecorder, 50)
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() { answers[i] = e.send(replicas[i%3], d.request()) })
	}
	wait.Wait()
	for _, answer := range answers {
		e.check(http.StatusAccepted, answer)
	}
	e.wantEvents(1)
	if e.counted("recorded", "Recorded") != 1 || e.counted("duplicate", "AlreadyRecorded") != 49 {
		t.Error("want one recorded and 49 duplicates")
	}
	payloads, err := e.client.PlumblineV1alpha1().EventPayloads(systemNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(payloads.Items) != stored {
		t.Errorf("%d payloads, %v; want %d", len(payloads.Items), err, stored)
	}
}
