// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

func withRun(s v1alpha1.GitEventStatus, uid types.UID) v1alpha1.GitEventStatus {
	s.Runs = []v1alpha1.Run{{Name: "r", UID: uid}}
	return s
}

func TestRedeliveryIsProcessedAgainOnlyWithoutRuns(t *testing.T) {
	for name, c := range map[string]struct {
		status v1alpha1.GitEventStatus
		again  bool
	}{
		"unsettled":                        {v1alpha1.GitEventStatus{}, false},
		"unsettled, waiting for approval":  {v1alpha1.GitEventStatus{Disposition: v1alpha1.DispositionPending}, false},
		"settled with runs":                {settled(v1alpha1.DispositionRuns), false},
		"no pipeline matched":              {settled(v1alpha1.DispositionIgnored), false},
		"refused":                          {settled(v1alpha1.DispositionRefused), true},
		"never approved":                   {settled(v1alpha1.DispositionPending), true},
		"refused, with created runs":       {withRun(settled(v1alpha1.DispositionRefused), "uid"), false},
		"refused, with planned runs":       {withRun(settled(v1alpha1.DispositionRefused), ""), true},
		"settled with refused runs":        {withRun(settled(v1alpha1.DispositionRuns), ""), false},
		"superseded":                       {settled(v1alpha1.DispositionSuperseded), false},
		"a disposition of a newer version": {settled("Unheard-of"), false},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			first, _ := e.record(large("k1"))
			e.settle(first, c.status)
			second, created := e.record(large("k1"))
			if created != c.again {
				t.Fatalf("the redelivery is recorded: %t", created)
			}
			if !c.again {
				return
			}
			events := e.wantEvents(2)
			if second != first+"-r1" || events[1].Spec.Payload.Name == events[0].Spec.Payload.Name {
				t.Errorf("second record %s with payload %s", second, events[1].Spec.Payload.Name)
			}
			if name, created := e.record(large("k1")); created || name != second {
				t.Errorf("a copy of the unsettled redelivery is %s, created: %t", name, created)
			}
			e.settle(second, c.status)
			if third, created := e.record(large("k1")); !created || third != first+"-r2" {
				t.Errorf("third record %s, created: %t", third, created)
			}
		})
	}
}

func TestRedeliveriesAreBounded(t *testing.T) {
	e := newEnv(t)
	for range 21 {
		name, _ := e.record(push("k1"))
		e.settle(name, settled(v1alpha1.DispositionRefused))
	}
	if f := e.refuse(push("k1")); f.Reason != "RedeliveryLimit" {
		t.Errorf("refused with %s", f.Reason)
	}
	e.wantEvents(21)
}

func TestRedeliveryOfASettledEventLeavesNoPayload(t *testing.T) {
	e := newEnv(t)
	name, _ := e.record(large("k1"))
	e.settle(name, settled(v1alpha1.DispositionRuns))
	e.deletePayload(e.events()[0].Spec.Payload.Name + "-0")
	e.record(large("k1"))
	if left := len(e.payloads()); left != 0 {
		t.Errorf("%d payloads, want none: nothing would delete them", left)
	}
}

// When the sweep has evicted a settled event, its tombstone takes effect on a redelivery instead.
func TestRedeliveryAfterEviction(t *testing.T) {
	for name, c := range map[string]struct {
		status v1alpha1.GitEventStatus
		want   int // GitEvents afterwards
	}{
		"an event with runs":                 {settled(v1alpha1.DispositionRuns), 0},
		"a refused event is processed again": {settled(v1alpha1.DispositionRefused), 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			first, _ := e.record(push("k1"))
			e.settle(first, c.status)
			e.evict(first)
			if name, created := e.record(push("k1")); created && name != first+"-r1" {
				t.Errorf("recorded as %s", name)
			}
			e.wantEvents(c.want)
			e.record(push("k1"))
			e.wantEvents(c.want)
			other := push("k1") // another body under the same key
			other.spec.SHA, other.body = strings.Repeat("f", 40), []byte("another body")
			if f := e.refuse(other); f.Reason != "ForeignEvent" {
				t.Errorf("another body is refused with %s", f.Reason)
			}
			e.pass(retention)
			e.record(push("k1"))
			e.wantEvents(c.want + 1) // no service sends it again any more: it is another delivery
		})
	}
}

// GitLab's log has no e-mail addresses, so a delivery that it sends again has another body.
func TestRedeliveryWithoutAddressesIsTheSameDelivery(t *testing.T) {
	e := newEnv(t)
	first, again := push("k1"), push("k1")
	first.body, again.body = []byte("of ada@example.com"), []byte("of [REDACTED]")
	name, _ := e.record(first)
	e.record(again)
	e.wantEvents(1)
	e.settle(name, settled(v1alpha1.DispositionRefused))
	second, _ := e.record(again)
	if e.wantEvents(2); second != name+"-r1" {
		t.Errorf("the second record is %s", second)
	}
	e.settle(second, settled(v1alpha1.DispositionRuns))
	e.evict(name)
	e.record(first)
	e.record(again)
	e.wantEvents(1)
}

// It must be certain that there is no tombstone.
func TestUnreadableTombstoneIsNotAbsent(t *testing.T) {
	pages := v1alpha1.Resource("tombstonepages")
	for name, err := range map[string]error{
		"503":       apierrors.NewServiceUnavailable("shutting down"),
		"forbidden": apierrors.NewForbidden(pages, "x", errors.New("no")),
		"unknown":   errors.New("whatever"),
		"not served": apierrors.NewGenericServerResponse(http.StatusNotFound, "get", pages, "x", "404 page not found", 0,
			true),
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.fail("get", "tombstonepages", err)
			_ = e.refuse(push("k1"))
			e.wantEvents(0)
		})
	}
}
