// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
)

// What a delivery costs: the calls that write, and those that read.
func TestCallsOfADelivery(t *testing.T) {
	const event, pages, payload = "gitevents", "tombstonepages", "eventpayloads"
	created := func(at time.Time) delivery { return happened("k", at) }
	for name, c := range map[string]struct {
		d     func(at time.Time) delivery
		old   time.Duration // of the event
		ahead time.Duration // of the API server's clock
		first bool          // of this process
		quiet time.Duration // since the delivery before
		calls []string
	}{
		"a small one":                    {d: created, calls: []string{"create " + event}},
		"the first of a process":         {d: created, first: true, calls: []string{"create " + event, "get " + event, "get " + pages}},
		"one while clocks differ":        {d: created, ahead: time.Hour, calls: []string{"create " + event, "get " + event, "get " + pages}},
		"one after a quiet time":         {d: created, quiet: time.Hour, calls: []string{"create " + event, "get " + event, "get " + pages}},
		"one when our clock was set":     {d: created, quiet: -time.Hour, calls: []string{"create " + event, "get " + event, "get " + pages}},
		"one that was sent for long":     {d: created, old: 50 * time.Minute, calls: []string{"create " + event, "get " + event, "get " + pages}},
		"one of a clock that is ahead":   {d: created, old: -time.Hour, calls: []string{"create " + event, "get " + event, "get " + pages}},
		"one whose body tells no time":   {d: func(time.Time) delivery { return push("k") }, calls: []string{"create " + event, "get " + event, "get " + pages}},
		"a large one writes its payload": {d: func(at time.Time) delivery { d := large("k"); d.message.At = at.Unix(); return d }, calls: []string{"create " + payload, "create " + event, "get " + event}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ahead = c.ahead
			h := w.replica()
			if !c.first {
				w.check(http.StatusAccepted, w.send(h, happened("another", w.clock.Now().Add(-time.Second)).request()))
			}
			w.client.ClearActions()
			w.clock.SetTime(w.clock.Now().Add(c.quiet))
			w.check(http.StatusAccepted, w.send(h, c.d(w.clock.Now().Add(-c.old)).request()))
			var calls []string
			for _, action := range w.client.Actions() {
				if slices.Contains([]string{event, pages, payload}, action.GetResource().Resource) {
					calls = append(calls, action.GetVerb()+" "+action.GetResource().Resource)
				}
			}
			slices.Sort(calls)
			want := slices.Sorted(slices.Values(c.calls))
			if !slices.Equal(calls, want) {
				t.Errorf("calls %v, want %v", calls, want)
			}
		})
	}
}

// The sweep writes a tombstone and then deletes the event. Whoever looks for the tombstone before
// that and creates the event after it runs the delivery twice: so of an event that the sweep may
// delete the record is read first.
func TestAnEventThatIsBuriedMeanwhileDoesNotRunAgain(t *testing.T) {
	for name, d := range map[string]delivery{"whose body tells no time": push("k1"), "that happened an hour ago": happened("k1", time.Date(2026, 1, 2, 2, 0, 0, 0, time.UTC))} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.expect(http.StatusAccepted, d)
			first := w.settle(0, settled(v1alpha1.DispositionRuns))
			var once sync.Once
			w.client.PrependReactor("get", "tombstonepages", func(clienttesting.Action) (early bool, _ runtime.Object, _ error) {
				once.Do(func() { early = true })
				if early {
					w.evict(first)
				}
				return early, nil, apierrors.NewNotFound(v1alpha1.Resource("tombstonepages"), "x")
			})
			if answer := w.expect(http.StatusAccepted, d); !strings.Contains(answer.Body.String(), "already recorded") {
				t.Errorf("answered %s", answer.Body)
			}
		})
	}
}

// A copy of what is recorded needs no room, also when its event has ended.
func TestACopyNeedsNoRoom(t *testing.T) {
	w := newWorld(t)
	d := happened("k1", w.clock.Now())
	w.expect(http.StatusAccepted, d)
	w.settle(0, settled(v1alpha1.DispositionRuns))
	for i := range 200 {
		seen := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("e", i)}}
		quota.Annotate(seen, types.NamespacedName{Namespace: "ci", Name: "app"}, 1)
		w.budget.Watched(seen)
	}
	w.expect(http.StatusAccepted, d)
	w.expect(http.StatusServiceUnavailable, happened("k2", w.clock.Now().Add(time.Second)))
	w.wantEvents(1)
	if w.counted("duplicate", "AlreadyRecorded") != 1 || w.counted("unavailable", quota.ReasonRepository) != 1 {
		t.Errorf("want a duplicate and a refusal:\n%s", w.log())
	}
}

// What a create leaves behind that failed is counted only if it may be there.
func TestAFailedCreateUsesNoBudget(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		uses bool
	}{
		"it was refused":         {apierrors.NewForbidden(v1alpha1.Resource("gitevents"), "e", fmt.Errorf("exceeded quota: q")), false},
		"its outcome is unknown": {context.DeadlineExceeded, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.limits.Events = 10 // one of the Repository
			w.fail("create", "gitevents", c.err)
			w.expect(http.StatusServiceUnavailable, push("k1"))
			w.client.ReactionChain = w.client.ReactionChain[1:]
			status := http.StatusAccepted
			if c.uses {
				status = http.StatusServiceUnavailable
			}
			w.expect(status, push("k2"))
			w.expect(http.StatusAccepted, push(map[bool]string{true: "k1", false: "k2"}[c.uses]))
		})
	}
}
