// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"net/http"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
)

// outage lets deliveries fail for hours with this response, 0 for none, until a resend has failed
// and that was read. No receiver signals its end.
func (e *env) outage(answer int, guids ...string) {
	e.Helper()
	e.receive = func(string) int { return answer }
	for _, guid := range guids {
		e.deliver(guid)
	}
	e.run(6 * time.Hour)
	for n := len(e.resent); n == len(e.resent); {
		e.run(time.Minute)
	}
	e.run(redelivery.ReadEvery + time.Minute)
	e.receive = nil
}

// test presses Test at GitLab: an event that starts nothing.
func (e *env) test() {
	e.deliver("test")
	e.log[len(e.log)-1].Starts = false
}

// An outage may end without a receiver that notices it, for example of a proxy. Then the first
// delivery that succeeds ends the pause.
func TestSuccessEndsThePause(t *testing.T) {
	for name, c := range map[string]struct {
		answer int
		then   func(e *env)
		ends   bool
	}{
		"nothing was taken":                             {0, func(*env) {}, false},
		"one was taken":                                 {0, func(e *env) { e.deliver("new") }, true},
		"one was taken, one failed since":               {0, func(e *env) { e.deliver("new"); e.missed("newer") }, false},
		"no receiver responded, and now a test's event": {0, func(e *env) { e.test() }, true},
		"it was refused, and one was taken": {
			http.StatusServiceUnavailable, func(e *env) { e.deliver("new") }, true,
		},
		"it was refused, and a test proves nothing": {http.StatusServiceUnavailable, func(e *env) { e.test() }, false},
		"it was paused, and a user tested": {0, func(e *env) {
			e.pause(10 * time.Minute)
			e.test()
		}, true},
		"it was paused until the time was over": {0, func(e *env) { e.pause(10 * time.Minute) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.outage(c.answer, "a", "b")
			before := len(e.resent)
			c.then(e)
			e.run(redelivery.ReadEvery + time.Minute)
			if c.ends {
				e.wantOnce("a", "b")
			} else if len(e.resent) != before {
				t.Errorf("resent: %v", e.resent[before:])
			}
		})
	}
}

// Where GitLab reports no times the ids count.
func TestSuccessWithoutATimeEndsThePause(t *testing.T) {
	e := newEnv(t)
	e.run(time.Minute)
	e.outage(0, "a", "b")
	e.deliver("new")
	e.log[len(e.log)-1].At = time.Time{}
	e.run(redelivery.ReadEvery + time.Minute)
	e.wantOnce("a", "b")
}
