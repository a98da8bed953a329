// SPDX-License-Identifier: Apache-2.0

package deliveries

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// timed is a service that takes its time for a page, and a receiver that says all the time that it has refused something: a tenant above
// its budget has it say so.
type timed struct {
	*world
	page  time.Duration
	heard time.Time
}

func (s *timed) Page(ctx context.Context, cursor string) ([]provider.Attempt, string, error) {
	s.clock.Step(s.page)
	if now := s.clock.Now(); now.Sub(s.heard) > 3*time.Second {
		s.process.Heard()
		s.heard = now
	}
	return s.world.Page(ctx, cursor)
}

// Of more than the ledger has room for each look reads all again. Receivers that have refused something meanwhile do not have it read all the
// time: what was missed is asked for in between.
func TestABacklogIsAskedForBetweenLooks(t *testing.T) {
	w := newWorld(t)
	w.run(time.Minute)
	w.receive = nobody
	for n := range maxMissed + 1000 {
		w.deliver(fmt.Sprint("missed-", n), 1)
		w.clock.Step(100 * time.Millisecond)
	}
	w.receive = nil
	service := &timed{world: w, page: 300 * time.Millisecond}
	w.process.open = func(string, provider.Credentials) (provider.DeliveryLog, error) { return service, nil }
	w.run(20 * time.Minute)
	if len(w.asked) < 600 || w.pages > 20*60 {
		t.Errorf("asked for %d in twenty minutes, with %d pages", len(w.asked), w.pages)
	}
}
