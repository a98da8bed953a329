// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// More is missed than the ledger holds, and so much comes afterwards that one look does not reach
// back to what had no room. All of it is asked for in the end.
func TestWhatIsFurtherBackThanOneLookReads(t *testing.T) {
	w := newWorld(t)
	w.run(time.Minute)
	w.receive = nobody
	var all []string
	for n := range 5000 {
		guid := fmt.Sprint("missed-", n)
		w.deliver(guid, 1)
		all = append(all, guid)
		w.clock.Step(100 * time.Millisecond)
	}
	w.receive = nil
	w.heard()
	for minute := range 150 {
		for n := range 120 {
			w.deliver(fmt.Sprint("good-", minute, "-", n), 2)
		}
		w.run(time.Minute)
	}
	w.wantRecorded(all...)
	if len(w.events.Events) != 0 || len(w.asked) > 2*len(all) {
		t.Errorf("%d redeliveries of %d deliveries; the Repositories were told %d times", len(w.asked), len(all), len(w.events.Events))
	}
}

// failing is a service that may answer with an error when it is asked for a page that is not the
// newest.
type failing struct {
	*world
	calls int
	// answer is for the page at the cursor, in so many calls, the first one being 1.
	answer func(cursor string, calls int) error
}

func (f *failing) Page(ctx context.Context, cursor string) ([]provider.Attempt, string, error) {
	if cursor != "" {
		f.calls++
		if err := f.answer(cursor, f.calls); err != nil {
			return nil, "", err
		}
	}
	return f.world.Page(ctx, cursor)
}

// The part that was left unread is read although the service does not know the page any more where
// it is to be gone on with: then from the newest page on. What came meanwhile is found at once
// whatever becomes of that part.
func TestReadingOnFails(t *testing.T) {
	kept := fmt.Sprint(2 * pageSize)
	for name, c := range map[string]struct {
		answer func(cursor string, calls int) error
		then   string // the cursor after the first look
	}{
		"the cursor is forgotten": {answer: func(cursor string, _ int) error {
			if cursor == kept {
				return fault.Operatorf(fault.ReasonGitRejected, "422 Validation Failed")
			}
			return nil
		}},
		"two pages cannot be read": {answer: func(_ string, calls int) error {
			if calls <= 2 {
				return fault.Transientf("ServiceError", "500")
			}
			return nil
		}},
		"a limit is reached": {then: kept, answer: func(_ string, calls int) error {
			if calls == 1 {
				return fault.Throttledf("Limit", time.Minute, "429")
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.leftUnread(kept)
			service := &failing{world: w, answer: c.answer}
			w.process.open = func(string, provider.Credentials) (provider.DeliveryLog, error) { return service, nil }
			w.run(10 * time.Second)
			w.wantRecorded("new")
			if l, _, err := w.process.store.load(t.Context()); err != nil || l.Unread.Cursor != c.then || l.Unread.none() {
				t.Errorf("after the first look the unread part is %+v, %v", l.Unread, err)
			}
			w.run(20 * time.Minute)
			w.wantRecorded("old")
			pages := w.pages
			w.run(time.Hour)
			if looks := w.pages - pages; len(w.asked) != 2 || looks > 13 {
				t.Errorf("asked for %q, and read %d pages in a quiet hour", w.asked, looks)
			}
		})
	}
}

// leftUnread makes a ledger whose unread part begins at the cursor and has the missed delivery
// "old"; "new" was missed since the last look.
func (w *world) leftUnread(cursor string) {
	w.Helper()
	begin := w.clock.Now()
	w.receive = nobody
	w.deliver("old", 1)
	w.receive = nil
	for n := range 3 * pageSize {
		w.deliver(fmt.Sprint("good-", n), 2)
	}
	w.clock.Step(time.Hour)
	w.receive = nobody
	w.deliver("new", 1)
	w.receive = nil
	text, err := json.Marshal(ledger{Through: w.clock.Now(), Unread: unread{Cursor: cursor, Since: begin}})
	if err != nil {
		w.Fatal(err)
	}
	cm := w.tracked().DeepCopy()
	cm.Data = map[string]string{ledgerKey: string(text)}
	if err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("configmaps"), cm, system); err != nil {
		w.Fatal(err)
	}
}

// However much is refused of one tenant, what is unread is read: a delivery of another one may grow
// old in it.
func TestATenantsBacklogHidesNothingUnread(t *testing.T) {
	w := newWorld(t)
	w.leftUnread(fmt.Sprint(2 * pageSize))
	w.receive = func(guid string) int {
		if strings.HasPrefix(guid, "refused-") {
			return http.StatusServiceUnavailable
		}
		return http.StatusAccepted
	}
	for n := range roomForUnread + 100 {
		w.deliver(fmt.Sprint("refused-", n), 2)
	}
	w.run(time.Hour)
	w.wantRecorded("old", "new")
}
