// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

const day = 24 * time.Hour

// gaveUp adds an event that was received some time ago, and has just settled because it could not
// report the ends of its checks.
func (w *env) gaveUp(key string, age time.Duration) *v1alpha1.GitEvent {
	e := w.settled(key)
	e.CreationTimestamp = metav1.NewTime(w.clock.Now().Add(-age).Truncate(time.Second))
	e.Status.Unreported = true
	return e
}

// A report that was given up is repeated when its problem is fixed. Until then only the event
// records how its checks end. When it settles it may be older than all others, after days of
// waiting and of running.
func TestUnreportedEventStays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		age  time.Duration
		keep int
	}{
		"the deliveries of its time cannot come again": {age: 5 * day, keep: 1000},
		"there are as many newer ones as are kept":     {age: day, keep: 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t)
			w.settings = map[string]string{"settled-cap": fmt.Sprint(c.keep)}
			w.restart()
			e := w.gaveUp("given up", c.age)
			w.fill(100)
			w.later(4*day - time.Minute)
			w.fill(100)
			w.pass()
			if w.events[e.Name] == nil {
				t.Error("the record of its checks is lost")
			}
			w.later(time.Minute)
			w.pass()
			if w.events[e.Name] != nil {
				t.Error("it is kept forever")
			}
		})
	}
}

// An event that is both too old and above the cap is one event.
func TestUnreportedEventIsCountedOnce(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.settings = map[string]string{"settled-cap": "100"}
	w.restart()
	for n := range maxSparedOf {
		w.gaveUp(fmt.Sprint("given up ", n), 5*day)
	}
	w.later(time.Hour)
	w.fill(150)
	w.pass()
	kept := 0
	for _, e := range w.events {
		if e.Status.Unreported {
			kept++
		}
	}
	if kept != maxSparedOf {
		t.Errorf("%d of %d events are left that alone know how their checks end", kept, maxSparedOf)
	}
}

// A namespace can create many events with unreported results.
func TestUnreportedEventsAreBounded(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.settings = map[string]string{"settled-cap": "100"}
	w.restart()
	for n := range maxSparedOf + 50 {
		w.gaveUp(fmt.Sprint("one team's ", n), day)
	}
	for n := range 20 {
		w.gaveUp(fmt.Sprint("another's ", n), day).Spec.Repository.Namespace = "another"
	}
	w.later(time.Hour)
	w.fill(100)
	w.pass()
	if want := 100 + maxSparedOf + 20; len(w.events) != want {
		t.Errorf("%d events are left, want %d", len(w.events), want)
	}
}
