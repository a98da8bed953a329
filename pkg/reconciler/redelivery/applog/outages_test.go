// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
	asks "github.com/plumbline-ci/plumbline/pkg/store/signal"
)

// One of two receivers has no API server for two hours and answers 503 to every other delivery. The
// other receiver takes the rest.
func TestOutageOfOneReceiverGivesUpNothing(t *testing.T) {
	e := newEnv(t)
	e.run(time.Minute)
	attempts := 0
	e.receive = func(string) int {
		if attempts++; attempts*attempts%211%2 == 0 { // as good as any chance
			return http.StatusServiceUnavailable
		}
		return http.StatusAccepted
	}
	var all []string
	for n := range 2 * 60 {
		guid := fmt.Sprint("delivery-", n)
		e.deliver(guid, int64(n%3+1))
		all = append(all, guid)
		e.signal()
		e.run(time.Minute)
	}
	e.receive = nil
	e.run(3 * time.Hour)
	e.wantRecorded(all...)
	if len(e.events.Events) != 0 {
		t.Errorf("an Event says %q", <-e.events.Events)
	}
}

// A14 with ten minutes: the deliveries of an outage are requested and recorded once, within a
// minute of a receiver's signal.
func TestTenMinuteOutageIsMadeUpForWithinAMinute(t *testing.T) {
	e := newEnv(t)
	e.run(time.Minute)
	e.receive = unreachable
	var all []string
	for n := range 40 {
		guid := fmt.Sprint("missed-", n)
		e.deliver(guid, int64(n%3+1))
		all = append(all, guid)
		e.run(15 * time.Second)
	}
	e.receive = nil
	e.signal()
	e.run(time.Minute)
	for _, guid := range all {
		if e.recorded[guid] != 1 {
			t.Errorf("%s is recorded %d times", guid, e.recorded[guid])
		}
	}
	e.run(time.Hour)
	if requested := len(e.requests); requested > 2*len(all) {
		t.Errorf("%d redeliveries of %d deliveries", requested, len(all))
	}
}

// other is the GitHub of an env, with another response to Redeliver.
type other struct {
	*env
	redeliver func(id int64) error
}

func (o other) Redeliver(_ context.Context, id int64) error { return o.redeliver(id) }

func (e *env) redeliverBy(redeliver func(id int64) error) {
	e.source.open = func(string, provider.Credentials) (provider.DeliveryLog, error) { return other{e, redeliver}, nil }
}

// GitHub accepts a request and delivers hours later or never, or refuses it. It is repeated less
// and less often, and delays no other delivery of its repository.
func TestRequestWithoutResultIsRepeatedLessOften(t *testing.T) {
	for name, answer := range map[string]error{
		"later": nil, "failing": fault.Transientf("ServiceError", "500"), "refused": fault.Operatorf("Refused", "422"),
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.run(time.Minute)
			e.miss("stuck", 1)
			e.miss("next", 1)
			stuck, requested := e.log[0].ID, 0
			e.redeliverBy(func(id int64) error {
				if id != stuck {
					return e.Redeliver(context.Background(), id)
				}
				requested++
				return answer
			})
			e.run(6 * time.Hour)
			e.wantRecorded("next")
			if requested < 6 || requested > 15 {
				t.Errorf("it was requested %d times in six hours", requested)
			}
		})
	}
}

// GitHub sends again what is at most three days old. A delivery that it has refused until then is
// given up, with one Event.
func TestRefusedRequestIsGivenUpAfterThreeDays(t *testing.T) {
	e := newEnv(t)
	e.run(time.Minute)
	e.miss("refused", 1)
	requested := 0
	e.redeliverBy(func(int64) error {
		requested++
		return fault.Operatorf(fault.ReasonGitRejected, "422 Validation Failed")
	})
	e.run(3*24*time.Hour - time.Hour)
	if len(e.events.Events) != 0 || requested < 60 {
		t.Errorf("within three days it was requested %d times, and the Repository got %d Events", requested,
			len(e.events.Events))
	}
	e.run(3 * time.Hour)
	before := requested
	e.start()
	e.redeliverBy(func(int64) error { requested++; return nil })
	e.run(24 * time.Hour)
	if len(e.events.Events) != 1 || requested != before {
		t.Errorf("after three days it was requested %d times, and the Repository got %d Events", requested-before,
			len(e.events.Events))
	}
}

func TestDroppedDeliveriesAreRequestedTwoASecond(t *testing.T) {
	e := newEnv(t)
	e.run(time.Minute)
	e.receive = unreachable
	for n := range 195 {
		e.deliver(fmt.Sprint("missed-", n), 1)
	}
	requested := 0
	e.redeliverBy(func(int64) error { requested++; return fault.Ignoredf("DeliveryGone", "it is gone") })
	e.signal()
	e.run(time.Minute)
	if requested < 100 || requested > 121 {
		t.Errorf("%d calls in a minute", requested)
	}
}

// A delivery that is given up stays so for the next process, however full the ledger is. Its Event
// comes once, although the ledger cannot be written at first. The data of others in the ConfigMap
// stays.
func TestGivenUpDeliveryStaysGivenUp(t *testing.T) {
	e := newEnv(t)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: system, Name: asks.Ledger, CreationTimestamp: metav1.NewTime(e.clock.Now().Add(-time.Hour)),
	}}
	cm.Data = map[string]string{"others": "theirs"}
	err := e.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("configmaps"), cm, system)
	if err != nil {
		t.Fatal(err)
	}
	e.run(time.Minute)
	e.receive = unreachable
	for n := range maxMissed {
		e.deliver(fmt.Sprint("missed-", n), 2)
	}
	e.clock.Step(time.Second)
	e.deliver("gone", 1)
	gone, requested := e.log[len(e.log)-1].ID, 0
	forgotten := func(id int64) error {
		if id != gone {
			return nil // and nothing comes of it
		}
		requested++
		return fault.Ignoredf("DeliveryGone", "it is gone")
	}
	conflicts := 3 * 5
	e.kube.PrependReactor("update", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		update, _ := a.(clienttesting.UpdateAction)
		written, _ := update.GetObject().(*corev1.ConfigMap)
		if conflicts == 0 || !strings.Contains(written.Data[ledgerKey], "gaveUp") {
			return false, nil, nil
		}
		conflicts--
		return true, nil, apierrors.NewConflict(corev1.Resource("configmaps"), asks.Ledger, nil)
	})
	for range 3 {
		e.redeliverBy(forgotten)
		e.run(20 * time.Minute)
		e.start()
	}
	if conflicts != 0 || requested != 1 || len(e.events.Events) != 1 {
		t.Errorf("%d conflicts left; requested %d times, %d Events", conflicts, requested, len(e.events.Events))
	}
	_, cm, err = e.source.store.load(t.Context())
	if err != nil || cm.Data["others"] != "theirs" {
		t.Errorf("the ConfigMap has %q besides, %v", cm.Data["others"], err)
	}
}

// The ledger drops what was given up when the log does not list it any more, and the oldest of very
// many.
func TestLedgerDropsOldGivenUpDeliveries(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	l := ledger{Through: begin}
	for n := range maxGivenUp + 5 {
		l.Missed = append(l.Missed, redelivery.Delivery{
			GUID: fmt.Sprint("given-up-", n), First: begin, Last: begin.Add(time.Duration(n) * time.Second), GaveUp: true,
		})
	}
	for n := range maxMissed {
		l.Missed = append(l.Missed, redelivery.Delivery{GUID: fmt.Sprint("wanted-", n), First: begin, Last: begin})
	}
	l.forget()
	if n := len(l.Missed) - l.wanted(); n != maxGivenUp || len(l.Missed) != maxMissed ||
		slices.ContainsFunc(l.Missed, func(m redelivery.Delivery) bool { return m.GUID == "given-up-4" }) {
		t.Errorf("%d of %d are given up", n, len(l.Missed))
	}
	l.Through = begin.Add(redelivery.RememberedFor + time.Minute)
	l.forget()
	if n := len(l.Missed) - l.wanted(); n != maxGivenUp+5-60 {
		t.Errorf("%d are remembered", n)
	}
}

// slow is a service that takes three seconds for a page.
type slow struct {
	*env
	used time.Duration
}

func (s *slow) Page(ctx context.Context, cursor string) ([]provider.Attempt, string, error) {
	s.used += 3 * time.Second
	if end, limited := ctx.Deadline(); limited && time.Until(end) < s.used {
		return nil, "", fault.Transientf(fault.ReasonCanceled, "it took too long")
	}
	return s.env.Page(ctx, cursor)
}

// A read that is ended starts over, so it must not be ended too early.
func TestSlowServiceIsReadToTheEnd(t *testing.T) {
	e := newEnv(t)
	e.miss("missed", 1)
	for n := range (maxPages - 1) * pageSize {
		e.deliver(fmt.Sprint("delivery-", n), 2)
	}
	e.source.open = func(string, provider.Credentials) (provider.DeliveryLog, error) { return &slow{env: e}, nil }
	e.run(time.Minute)
	e.wantRecorded("missed")
}
