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
	e := newEnv(t)
	e.run(time.Minute)
	e.receive = nobody
	var all []string
	for n := range 5000 {
		guid := fmt.Sprint("missed-", n)
		e.deliver(guid, 1)
		all = append(all, guid)
		e.clock.Step(100 * time.Millisecond)
	}
	e.receive = nil
	e.signal()
	for minute := range 150 {
		for n := range 120 {
			e.deliver(fmt.Sprint("good-", minute, "-", n), 2)
		}
		e.run(time.Minute)
	}
	e.wantRecorded(all...)
	if len(e.events.Events) != 0 || len(e.asked) > 2*len(all) {
		t.Errorf("%d redeliveries of %d deliveries; the Repositories were told %d times", len(e.asked), len(all), len(e.events.Events))
	}
}

// failing is a service that may answer with an error when it is asked for a page that is not the
// newest.
type failing struct {
	*env
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
	return f.env.Page(ctx, cursor)
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
			e := newEnv(t)
			e.leftUnread(kept)
			service := &failing{env: e, answer: c.answer}
			e.source.open = func(string, provider.Credentials) (provider.DeliveryLog, error) { return service, nil }
			e.run(10 * time.Second)
			e.wantRecorded("new")
			if l, _, err := e.source.store.load(t.Context()); err != nil || l.Unread.Cursor != c.then || l.Unread.none() {
				t.Errorf("after the first look the unread part is %+v, %v", l.Unread, err)
			}
			e.run(20 * time.Minute)
			e.wantRecorded("old")
			pages := e.pages
			e.run(time.Hour)
			if looks := e.pages - pages; len(e.asked) != 2 || looks > 13 {
				t.Errorf("asked for %q, and read %d pages in a quiet hour", e.asked, looks)
			}
		})
	}
}

// leftUnread makes a ledger whose unread part begins at the cursor and has the missed delivery
// "old"; "new" was missed since the last look.
func (e *env) leftUnread(cursor string) {
	e.Helper()
	begin := e.clock.Now()
	e.receive = nobody
	e.deliver("old", 1)
	e.receive = nil
	for n := range 3 * pageSize {
		e.deliver(fmt.Sprint("good-", n), 2)
	}
	e.clock.Step(time.Hour)
	e.receive = nobody
	e.deliver("new", 1)
	e.receive = nil
	text, err := json.Marshal(ledger{Through: e.clock.Now(), Unread: unread{Cursor: cursor, Since: begin}})
	if err != nil {
		e.Fatal(err)
	}
	cm := e.tracked().DeepCopy()
	cm.Data = map[string]string{ledgerKey: string(text)}
	if err := e.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("configmaps"), cm, system); err != nil {
		e.Fatal(err)
	}
}

// However much is refused of one tenant, what is unread is read: a delivery of another one may grow
// old in it.
func TestATenantsBacklogHidesNothingUnread(t *testing.T) {
	e := newEnv(t)
	e.leftUnread(fmt.Sprint(2 * pageSize))
	e.receive = func(guid string) int {
		if strings.HasPrefix(guid, "refused-") {
			return http.StatusServiceUnavailable
		}
		return http.StatusAccepted
	}
	for n := range roomForUnread + 100 {
		e.deliver(fmt.Sprint("refused-", n), 2)
	}
	e.run(time.Hour)
	e.wantRecorded("old", "new")
}
