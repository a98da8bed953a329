// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/receiver/recorder"
)

// The calls that a delivery costs.
func TestCallsOfADelivery(t *testing.T) {
	const event, pages, payload = "gitevents", "tombstonepages", "eventpayloads"
	one := []string{"create " + event}
	three := []string{"create " + event, "get " + event, "get " + pages}
	for name, c := range map[string]struct {
		d     func(at time.Time) delivery
		age   time.Duration // of the event
		ahead time.Duration // of the API server's clock
		first bool          // of this process
		quiet time.Duration // since the delivery before
		calls []string
	}{
		"a small one":                  {calls: one},
		"the first of a process":       {first: true, calls: three},
		"one while clocks differ":      {ahead: time.Hour, calls: three},
		"one after a quiet time":       {quiet: time.Hour, calls: three},
		"one when our clock was set":   {quiet: -time.Hour, calls: three},
		"one of an old event":          {age: 50 * time.Minute, calls: three},
		"one of a clock that is ahead": {age: -time.Hour, calls: three},
		"one whose body has no time":   {d: func(time.Time) delivery { return push("k") }, calls: three},
		"a large one writes its payload": {
			d: large("k").at, calls: []string{"create " + payload, "create " + event, "get " + event},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.ahead = c.ahead
			r := e.recorder()
			if !c.first {
				e.recordBy(r, pushAt("another", e.clock.Now().Add(-time.Second)))
			}
			e.client.ClearActions()
			e.pass(c.quiet)
			if c.d == nil {
				c.d = push("k").at
			}
			e.recordBy(r, c.d(e.clock.Now().Add(-c.age)))
			var calls []string
			for _, action := range e.client.Actions() {
				calls = append(calls, action.GetVerb()+" "+action.GetResource().Resource)
			}
			slices.Sort(calls)
			if want := slices.Sorted(slices.Values(c.calls)); !slices.Equal(calls, want) {
				t.Errorf("calls %v, want %v", calls, want)
			}
		})
	}
}

// The sweep writes a tombstone and then deletes the event. A recorder that read the tombstone
// before that and created the event after it would run the delivery twice. So it reads the record
// first.
func TestEventThatIsEvictedDuringTheLookUpDoesNotRunAgain(t *testing.T) {
	for name, d := range map[string]func() delivery{
		"its body has no time":    func() delivery { return push("k1") },
		"it happened an hour ago": func() delivery { return pushAt("k1", time.Date(2026, 1, 2, 2, 0, 0, 0, time.UTC)) },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			first, _ := e.record(d())
			e.settle(first, settled(v1alpha1.DispositionRuns))
			var once sync.Once
			e.client.PrependReactor("get", "tombstonepages", func(clienttesting.Action) (early bool, _ runtime.Object, _ error) {
				once.Do(func() { early = true })
				if early {
					e.evict(first)
				}
				return early, nil, apierrors.NewNotFound(v1alpha1.Resource("tombstonepages"), "x")
			})
			if name, created := e.record(d()); created {
				t.Errorf("recorded as %s", name)
			}
		})
	}
}

// S35: a sender that has seen a delivery can send its body again under another id, because the
// signature does not cover the id.
func TestBodyUnderAnotherIDIsTheSameDelivery(t *testing.T) {
	e := newEnv(t)
	at := e.clock.Now()
	first, _ := e.record(pushAt("k1", at))
	if replayed, created := e.record(pushAt("k2", at)); created || replayed != first ||
		e.events()[0].Spec.DeliveryKey != "k1" {
		t.Errorf("the replay is %s, created: %t", replayed, created)
	}
	e.settle(first, settled(v1alpha1.DispositionRuns))
	e.record(pushAt("k3", at))
	e.wantEvents(1)
	e.pass(30 * time.Minute) // the sweep leaves the stub for so long
	e.evict(first)
	e.record(pushAt("k4", at))
	e.wantEvents(0)
	e.record(pushAt("k5", at.Add(time.Second))) // another event
	e.wantEvents(1)
}

// The same Idempotency-Key is refused for another request to /incoming, also after the event was
// deleted: an answer "already recorded" would lose that request.
func TestIdempotencyKeyIsForOneRequest(t *testing.T) {
	requested := func(pipeline, version string) delivery {
		d := push("incoming-key")
		d.body = fmt.Appendf(nil, "%s %s", pipeline, version)
		d.spec.SHA, d.spec.EventType, d.spec.Body = "", v1alpha1.EventIncoming, &v1alpha1.BodyIdentity{
			Key: d.spec.DeliveryKey,
		}
		d.spec.Incoming = &v1alpha1.Incoming{Pipeline: pipeline, Params: map[string]string{"version": version}}
		return d
	}
	e := newEnv(t)
	first, _ := e.record(requested("build", "1"))
	e.settle(first, settled(v1alpha1.DispositionRuns))
	for _, evicted := range []bool{false, true} {
		if evicted {
			e.evict(first)
		}
		if name, created := e.record(requested("build", "1")); created || name != first {
			t.Errorf("evicted: %t: the same request is %s, created: %t", evicted, name, created)
		}
		for _, other := range []delivery{requested("deploy", "1"), requested("build", "2")} {
			if got := e.refuse(other).Reason; got != recorder.ReasonForeignEvent {
				t.Errorf("evicted: %t: another request is refused as %s", evicted, got)
			}
		}
	}
}

func TestBodyUnderAnotherIDIsProcessedAgainAfterARefusal(t *testing.T) {
	e := newEnv(t)
	first, _ := e.record(pushAt("k1", e.clock.Now()))
	e.settle(first, settled(v1alpha1.DispositionRefused))
	if name, created := e.record(pushAt("k2", e.clock.Now())); !created || name != first+"-r1" {
		t.Errorf("recorded as %s, created: %t", name, created)
	}
}

// A2: a create that landed is recorded once, even if its answer was lost.
func TestCreateWithUnknownOutcomeIsRecordedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		resource string
		err      error
		landed   bool
		refused  bool
	}{
		"the event landed, the answer timed out": {"gitevents", apierrors.NewTimeoutError("slow", 1), true, false},
		"the event landed, the connection dropped": {
			"gitevents", &url.Error{Op: "Post", URL: "x", Err: syscall.ECONNRESET}, true, false,
		},
		"the event landed, etcd lost its leader": {
			"gitevents", apierrors.NewInternalError(errors.New("etcdserver: leader changed")), true, false,
		},
		"the event did not land":                   {"gitevents", context.DeadlineExceeded, false, true},
		"the payload landed, the answer timed out": {"eventpayloads", apierrors.NewTimeoutError("slow", 1), true, false},
		"the payload did not land, the second did": {"eventpayloads", context.DeadlineExceeded, false, false},
		"a denial is final: the create is not retried": {
			"gitevents", apierrors.NewBadRequest(`admission webhook "x" denied the request: no`), false, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.failOnce(c.resource, c.err, c.landed)
			d := push("k1")
			if c.resource == "eventpayloads" {
				d = large("k1")
			}
			if c.refused {
				_ = e.refuse(d)
				e.wantEvents(0)
			}
			e.record(d)
			e.record(d)
			e.wantEvents(1)
		})
	}
}
