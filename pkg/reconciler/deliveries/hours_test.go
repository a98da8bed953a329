// SPDX-License-Identifier: Apache-2.0

package deliveries

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// One of two receivers that has lost the API server for two hours answers 503 to every other delivery, and the other one takes
// the rest. Nothing is given up for that.
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

// What a service takes and delivers hours later, or never, or refuses to deliver, is asked for less and less often, and holds up
// no other delivery of its repository.
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

// What the service has forgotten costs a call each, one a second.
func TestMuchThatTheServiceHasForgotten(t *testing.T) {
	w := newWorld(t)
	w.run(time.Minute)
	w.receive = nobody
	for n := range 95 {
		w.deliver(fmt.Sprint("missed-", n), 1)
	}
	asked := 0
	w.redeliverBy(func(int64) error { asked++; return fault.Ignoredf("DeliveryGone", "it is gone") })
	w.heard()
	w.run(time.Minute)
	if asked < 50 || asked > 65 {
		t.Errorf("%d calls in a minute", asked)
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
