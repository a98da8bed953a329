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
	asks "github.com/plumbline-ci/plumbline/pkg/store/signal"
)

// One of two receivers that has lost the API server for two hours answers 503 to every other
// delivery, and the other one takes the rest. Nothing is given up for that.
func TestHalfAnOutageLosesNothing(t *testing.T) {
	w := newWorld(t)
	w.run(time.Minute)
	attempts := 0
	w.receive = func(string) int {
		if attempts++; attempts*attempts%211%2 == 0 { // as good as any chance
			return http.StatusServiceUnavailable
		}
		return http.StatusAccepted
	}
	var all []string
	for n := range 2 * 60 {
		guid := fmt.Sprint("delivery-", n)
		w.deliver(guid, int64(n%3+1))
		all = append(all, guid)
		w.heard()
		w.run(time.Minute)
	}
	w.receive = nil
	w.run(3 * time.Hour)
	w.wantRecorded(all...)
	if len(w.events.Events) != 0 {
		t.Errorf("somebody was told %q", <-w.events.Events)
	}
}

// A14 with ten minutes: what came while nobody could record it is asked for, and recorded once,
// within a minute of the moment in which a receiver says that it is there.
func TestTenMinutesAreMadeUpForWithinOne(t *testing.T) {
	w := newWorld(t)
	w.run(time.Minute)
	w.receive = nobody
	var all []string
	for n := range 40 {
		guid := fmt.Sprint("missed-", n)
		w.deliver(guid, int64(n%3+1))
		all = append(all, guid)
		w.run(15 * time.Second)
	}
	w.receive = nil
	w.heard()
	w.run(time.Minute)
	for _, guid := range all {
		if w.recorded[guid] != 1 {
			t.Errorf("%s is recorded %d times", guid, w.recorded[guid])
		}
	}
	w.run(time.Hour)
	if asked := len(w.asked); asked > 2*len(all) {
		t.Errorf("%d redeliveries of %d deliveries", asked, len(all))
	}
}

// Many receivers that answer 503 now and then say so at all times. That puts off no look.
func TestManyReceiversPutOffNoLook(t *testing.T) {
	w := newWorld(t)
	w.run(time.Minute)
	w.receive = nobody
	w.deliver("missed", 1)
	w.receive = nil
	pages, next := w.pages, w.clock.Now()
	for range 60 {
		w.process.Heard()
		w.clock.Step(time.Second)
		if !w.clock.Now().Before(next) {
			next = w.clock.Now().Add(w.reconcile())
		}
	}
	w.wantRecorded("missed")
	if looks := w.pages - pages; looks > 8 {
		t.Errorf("%d looks in a minute", looks)
	}
}

// other is the service of a world, with another answer to Redeliver.
type other struct {
	*world
	redeliver func(id int64) error
}

func (o other) Redeliver(_ context.Context, id int64) error { return o.redeliver(id) }

func (w *world) redeliverBy(redeliver func(id int64) error) {
	w.process.open = func(string, provider.Credentials) (provider.DeliveryLog, error) { return other{w, redeliver}, nil }
}

// What a service takes and delivers hours later, or never, or refuses to deliver, is asked for less
// and less often, and holds up no other delivery of its repository.
func TestWhatIsNotSentAgainIsAskedForLessOften(t *testing.T) {
	for name, answer := range map[string]error{
		"later": nil, "failing": fault.Transientf("ServiceError", "500"), "refused": fault.Operatorf("Refused", "422"),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.run(time.Minute)
			w.receive = nobody
			w.deliver("stuck", 1)
			w.deliver("next", 1)
			w.receive = nil
			stuck, asked := w.log[0].ID, 0
			w.redeliverBy(func(id int64) error {
				if id != stuck {
					return w.Redeliver(context.Background(), id)
				}
				asked++
				return answer
			})
			w.run(6 * time.Hour)
			w.wantRecorded("next")
			if asked < 6 || asked > 15 {
				t.Errorf("it was asked for %d times in six hours", asked)
			}
		})
	}
}

// GitHub sends again what is not older than three days. What it has refused until then is given up,
// and its Repository told once.
func TestWhatIsTooOldToBeSentAgainIsGivenUp(t *testing.T) {
	w := newWorld(t)
	w.run(time.Minute)
	w.receive = nobody
	w.deliver("refused", 1)
	w.receive = nil
	asked := 0
	w.redeliverBy(func(int64) error {
		asked++
		return fault.Operatorf(fault.ReasonGitRejected, "422 Validation Failed")
	})
	w.run(3*24*time.Hour - time.Hour)
	if len(w.events.Events) != 0 || asked < 60 {
		t.Errorf("within three days it was asked for %d times, and the Repository was told %d times", asked, len(w.events.Events))
	}
	w.run(3 * time.Hour)
	before := asked
	w.start()
	w.redeliverBy(func(int64) error { asked++; return nil })
	w.run(24 * time.Hour)
	if len(w.events.Events) != 1 || asked != before {
		t.Errorf("after three days it was asked for %d times, and the Repository was told %d times", asked-before, len(w.events.Events))
	}
}

// What the service has forgotten costs a call each, two a second.
func TestMuchThatTheServiceHasForgotten(t *testing.T) {
	w := newWorld(t)
	w.run(time.Minute)
	w.receive = nobody
	for n := range 195 {
		w.deliver(fmt.Sprint("missed-", n), 1)
	}
	asked := 0
	w.redeliverBy(func(int64) error { asked++; return fault.Ignoredf("DeliveryGone", "it is gone") })
	w.heard()
	w.run(time.Minute)
	if asked < 100 || asked > 121 {
		t.Errorf("%d calls in a minute", asked)
	}
}

// What is given up stays so, by the next process as well, whatever else the ledger has to make room
// for, and is told once although it cannot be written down at first. What others keep in the
// ConfigMap stays.
func TestWhatIsGivenUpIsRemembered(t *testing.T) {
	w := newWorld(t)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: asks.Ledger, CreationTimestamp: metav1.NewTime(w.clock.Now().Add(-time.Hour))}}
	cm.Data = map[string]string{"others": "theirs"}
	err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("configmaps"), cm, system)
	if err != nil {
		t.Fatal(err)
	}
	w.run(time.Minute)
	w.receive = nobody
	for n := range maxMissed {
		w.deliver(fmt.Sprint("missed-", n), 2)
	}
	w.clock.Step(time.Second)
	w.deliver("gone", 1)
	gone, asked := w.log[len(w.log)-1].ID, 0
	forgotten := func(id int64) error {
		if id != gone {
			return nil // and nothing comes of it
		}
		asked++
		return fault.Ignoredf("DeliveryGone", "it is gone")
	}
	conflicts := 3 * maxConflicts
	w.kube.PrependReactor("update", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		update, _ := a.(clienttesting.UpdateAction)
		written, _ := update.GetObject().(*corev1.ConfigMap)
		if conflicts == 0 || !strings.Contains(written.Data[ledgerKey], "gaveUp") {
			return false, nil, nil
		}
		conflicts--
		return true, nil, apierrors.NewConflict(corev1.Resource("configmaps"), asks.Ledger, nil)
	})
	for range 3 {
		w.redeliverBy(forgotten)
		w.run(20 * time.Minute)
		w.start()
	}
	if conflicts != 0 || asked != 1 || len(w.events.Events) != 1 {
		t.Errorf("%d conflicts left; asked for %d times, told %d times", conflicts, asked, len(w.events.Events))
	}
	_, cm, err = w.process.store.load(t.Context())
	if err != nil || cm.Data["others"] != "theirs" {
		t.Errorf("the ConfigMap has %q besides, %v", cm.Data["others"], err)
	}
}

// What was given up is forgotten when the log does not list it any more, and of very many the
// oldest: for all others there is room.
func TestWhatIsGivenUpIsForgottenInTheEnd(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	l := ledger{Through: begin}
	for n := range maxGivenUp + 5 {
		l.Missed = append(l.Missed, missed{GUID: fmt.Sprint("given-up-", n), First: begin, Last: begin.Add(time.Duration(n) * time.Second), GaveUp: true})
	}
	for n := range maxMissed {
		l.Missed = append(l.Missed, missed{GUID: fmt.Sprint("wanted-", n), First: begin, Last: begin})
	}
	l.forget()
	if n := len(l.Missed) - l.open(); n != maxGivenUp || len(l.Missed) != maxMissed || slices.ContainsFunc(l.Missed, func(m missed) bool { return m.GUID == "given-up-4" }) {
		t.Errorf("%d of %d are given up", n, len(l.Missed))
	}
	l.Through = begin.Add(remembered + time.Minute)
	l.forget()
	if n := len(l.Missed) - l.open(); n != maxGivenUp+5-60 {
		t.Errorf("%d are remembered", n)
	}
}

// slow is a service that takes three seconds for a page.
type slow struct {
	*world
	used time.Duration
}

func (s *slow) Page(ctx context.Context, cursor string) ([]provider.Attempt, string, error) {
	s.used += 3 * time.Second
	if end, limited := ctx.Deadline(); limited && time.Until(end) < s.used {
		return nil, "", fault.Transientf(fault.ReasonCanceled, "it took too long")
	}
	return s.world.Page(ctx, cursor)
}

// A service that is slow is read to the end: who stops in between begins anew, and never ends.
func TestASlowService(t *testing.T) {
	w := newWorld(t)
	w.receive = nobody
	w.deliver("missed", 1)
	w.receive = nil
	for n := range (maxPages - 1) * pageSize {
		w.deliver(fmt.Sprint("delivery-", n), 2)
	}
	w.process.open = func(string, provider.Credentials) (provider.DeliveryLog, error) { return &slow{world: w}, nil }
	w.run(time.Minute)
	w.wantRecorded("missed")
}
