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

// More is undelivered than the ledger holds, and later deliveries put it out of reach of one read.
// All of it is requested in the end.
func TestBacklogBeyondOneReadIsRequested(t *testing.T) {
	e := newEnv(t)
	e.run(time.Minute)
	e.receive = unreachable
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
	if len(e.events.Events) != 0 || len(e.requests) > 2*len(all) {
		t.Errorf("%d redeliveries of %d deliveries; the Repositories got %d Events", len(e.requests), len(all),
			len(e.events.Events))
	}
}

// failing is a service that may fail for all pages but the newest.
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

// The unread part is read although GitHub has forgotten its cursor: then from the newest page on.
// New deliveries are found at once, whether or not the unread part can be read.
func TestUnreadPartSurvivesFailures(t *testing.T) {
	kept := fmt.Sprint(2 * pageSize)
	for name, c := range map[string]struct {
		answer func(cursor string, calls int) error
		then   string // the cursor after the first read
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
				t.Errorf("after the first read the unread part is %+v, %v", l.Unread, err)
			}
			e.run(20 * time.Minute)
			e.wantRecorded("old")
			pages := e.pages
			e.run(time.Hour)
			if reads := e.pages - pages; len(e.requests) != 2 || reads > 13 {
				t.Errorf("requested %q, and read %d pages in a quiet hour", e.requests, reads)
			}
		})
	}
}

// leftUnread stores a ledger whose unread part begins at the cursor and has the undelivered webhook
// "old"; "new" failed since the last read.
func (e *env) leftUnread(cursor string) {
	e.Helper()
	begin := e.clock.Now()
	e.miss("old", 1)
	for n := range 3 * pageSize {
		e.deliver(fmt.Sprint("good-", n), 2)
	}
	e.clock.Step(time.Hour)
	e.miss("new", 1)
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

// However many deliveries of one tenant are refused, the unread part is read: those of another
// tenant may grow old in it.
func TestBacklogOfOneTenantDelaysNoUnreadPart(t *testing.T) {
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
