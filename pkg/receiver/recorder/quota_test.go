// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/receiver/fairness"
)

var errQuota = errors.New("exceeded quota: plumbline, requested: count/gitevents.plumbline.dev=1, " +
	"used: count/gitevents.plumbline.dev=7, limited: count/gitevents.plumbline.dev=7")

// Receivers read from an event's metadata what it uses.
func TestEventIsAnnotatedWithWhatItUses(t *testing.T) {
	e := newEnv(t)
	e.record(push("k1"))
	small := e.wantEvents(1)[0]
	if got, want := small.Annotations["plumbline.dev/stored-bytes"], fmt.Sprint((len(small.Payload)+2)/3*4); got != want {
		t.Errorf("an event with its payload says %q, want %q", got, want)
	}
	e = newEnv(t)
	e.record(large("k1"))
	event, stored := e.wantEvents(1)[0], 0
	for _, payload := range e.payloads() {
		stored += (len(payload.Data) + 2) / 3 * 4
	}
	for name, want := range map[string]string{"plumbline.dev/repository": "ci/app",
		"plumbline.dev/stored-bytes": fmt.Sprint(stored)} {
		if event.Annotations[name] != want {
			t.Errorf("%s is %q, want %q", name, event.Annotations[name], want)
		}
	}
}

// A copy of a recorded delivery needs no quota, even if its event is settled.
func TestCopyNeedsNoQuota(t *testing.T) {
	e := newEnv(t)
	r := e.recorder() // one that knows the clock, so it creates before it looks up
	d := pushAt("k1", e.clock.Now())
	name, _ := e.recordBy(r, d)
	e.settle(name, settled(v1alpha1.DispositionRuns))
	for i := range 200 {
		other := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("e", i)}}
		quota.Annotate(other, types.NamespacedName{Namespace: "ci", Name: "app"}, 1)
		e.quota.Watched(other)
	}
	if name, created := e.recordBy(r, d); created {
		t.Errorf("the copy is recorded as %s", name)
	}
	if f := e.refuseBy(r, pushAt("k2", e.clock.Now().Add(time.Second))); f.Reason != quota.ReasonRepository {
		t.Errorf("another delivery is refused with %s", f.Reason)
	}
	e.wantEvents(1)
}

// A failed create counts only if its event may exist.
func TestFailedCreateUsesNoQuota(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		uses bool
	}{
		"it was refused":         {apierrors.NewForbidden(v1alpha1.Resource("gitevents"), "e", errQuota), false},
		"its outcome is unknown": {context.DeadlineExceeded, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.limits.Events = 10 // one for the Repository
			recovered := e.fail("create", "gitevents", c.err)
			_ = e.refuse(push("k1"))
			recovered()
			if c.uses {
				_ = e.refuse(push("k2"))
				e.record(push("k1"))
				return
			}
			e.record(push("k2"))
		})
	}
}

// While events cannot be created, their payloads are, and exist for an hour. They use no more than
// the quota.
func TestPayloadsWithoutEventsUseQuota(t *testing.T) {
	e := newEnv(t)
	e.limits.Bytes = 5_000_000 // a tenth for the Repository; a payload takes some 70,000
	e.fail("create", "gitevents", apierrors.NewForbidden(v1alpha1.Resource("gitevents"), "e", errQuota))
	reasons := map[string]int{}
	for i := range 50 {
		reasons[e.refuse(large(fmt.Sprint("k", i))).Reason]++
	}
	if n := len(e.payloads()); n < 2 || n > 15 {
		t.Errorf("%d payloads without an event, want what 500,000 bytes hold", n)
	}
	if reasons["QuotaExceeded"] == 0 || reasons[quota.ReasonRepository] == 0 {
		t.Errorf("refused with %v, want both reasons", reasons)
	}
}

// If a payload consists of several objects, some may exist when another one is refused. Those that
// exist count.
func TestPartsOfPayloadsUseQuota(t *testing.T) {
	e := newEnv(t)
	e.limits.Bytes = 20 << 20 // 2 MiB for the Repository
	e.client.PrependReactor("create", "eventpayloads", func(a clienttesting.Action) (bool, runtime.Object, error) {
		name := a.(clienttesting.CreateAction).GetObject().(*v1alpha1.EventPayload).Name
		return strings.HasSuffix(name, "-2"), nil, apierrors.NewForbidden(v1alpha1.Resource("eventpayloads"), name, errQuota)
	})
	reasons := map[string]int{}
	for i := range 10 {
		reasons[e.refuse(noise(fmt.Sprint("k", i), 700_000)).Reason]++ // three objects
	}
	if n := len(e.payloads()); n < 4 || n > 10 { // two of some 350 KB each for a delivery
		t.Errorf("%d parts of payloads, want what 2 MiB hold", n)
	}
	if reasons[quota.ReasonRepository] == 0 {
		t.Errorf("refused with %v, want the quota exhausted", reasons)
	}
}

// A payload that cannot be created leaves nothing that counts.
func TestFailedPayloadUsesNoQuota(t *testing.T) {
	e := newEnv(t)
	e.limits.Events = 20
	recovered := e.fail("create", "eventpayloads", apierrors.NewServiceUnavailable("shutting down"))
	for i := range 5 {
		_ = e.refuse(large(fmt.Sprint("k", i)))
	}
	recovered()
	e.record(push("k9"))
	e.record(push("k8"))
}

// API servers that count a ResourceQuota at the same time answer some creates with 409.
func TestQuotaConflictIsRetried(t *testing.T) {
	for _, resource := range []string{"eventpayloads", "gitevents"} {
		e, conflicts := newEnv(t), 0
		e.client.PrependReactor("create", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			conflicts++
			return conflicts < 4, nil, apierrors.NewConflict(v1alpha1.Resource("resourcequotas"), "plumbline",
				errors.New("the object has been modified"))
		})
		e.record(large("k1"))
		e.wantEvents(1)
	}
}

// A body in its GitEvent is written again with each status, so it counts for the rate of its
// namespace as EventPayloads do. Bodies of the usual size do not count.
func TestBodiesInEventsCountForTheRate(t *testing.T) {
	for _, size := range []int{12 << 10, 22 << 10, 31 << 10} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			e := newEnv(t)
			r, n := e.recorder(), 0
			record := func() error {
				d := noise(fmt.Sprint("k", n), size)
				_, _, err := r.Record(t.Context(), d.spec, d.body)
				return err
			}
			for n < 50 && record() == nil {
				n++
			}
			written := 4 * (size*4/3 - 10<<10) // with the event and three of its statuses, in base64, above the usual size
			if first, last := 512<<10/written, 512<<10/written+2; n < first || n > last {
				t.Fatalf("%d bodies of %d bytes are recorded, want %d to %d", n, size, first, last)
			}
			e.wantEvents(n)
			if payloads := len(e.payloads()); payloads != 0 {
				t.Errorf("%d payloads", payloads)
			}
			e.recordBy(r, noise("k0", size)) // it is recorded, and costs nothing
			if f := e.refuseBy(r, large("large")); f.Reason != fairness.ReasonRate {
				t.Errorf("a large body is refused with %s", f.Reason)
			}
			for i := range 60 {
				e.recordBy(r, noise(fmt.Sprint("usual", i), 5<<10))
			}
			e.pass(time.Minute)
			if err := record(); err != nil {
				t.Errorf("refused a minute later: %v", err)
			}
		})
	}
}

// What a team does at once is recorded: a bot that opens ten merge requests, or a push of some
// hundred files to ten repositories. A body that is hardly larger than usual counts hardly
// anything.
func TestUsualBurstsAreWithinTheRate(t *testing.T) {
	for size, n := range map[int]int{8 << 10: 100, 9 << 10: 40, 15 << 10: 10} { // 11, 12 and 20 KiB in JSON
		e := newEnv(t)
		r := e.recorder()
		for i := range n {
			e.recordBy(r, noise(fmt.Sprint("k", i), size))
		}
	}
}

// A body that was not written does not count for the rate. One that may have been written does.
func TestOnlyWrittenBodiesCountForTheRate(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		counts bool
	}{
		"refused":     {apierrors.NewBadRequest(`admission webhook "x" denied the request: no`), false},
		"unreachable": {context.DeadlineExceeded, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			r, limited := e.recorder(), 0
			e.fail("create", "gitevents", c.err)
			for i := range 20 {
				if e.refuseBy(r, noise(fmt.Sprint("k", i), 31<<10)).Reason == fairness.ReasonRate {
					limited++
				}
			}
			if limited > 0 != c.counts {
				t.Errorf("%d of 20 deliveries exceeded the rate", limited)
			}
		})
	}
}
