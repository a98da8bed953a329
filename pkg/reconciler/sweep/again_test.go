// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// redelivered records in an event that it was redelivered, as a receiver does.
func (w *env) redelivered(e *v1alpha1.GitEvent, at time.Time) {
	e.Annotations = map[string]string{plumbline.DeliveredAgainAnnotation: at.UTC().Format(time.RFC3339)}
	e.ResourceVersion += "0"
}

// A redelivered event stays as long as after its first delivery, as a stub and, above the cap, in a
// tombstone. A receiver whose clock is ahead, or that writes nonsense, cannot extend that.
func TestRedeliveryExtendsTheRecord(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		note func(w *env, e *v1alpha1.GitEvent)
		left time.Duration // of its time, three days after it came
	}{
		"delivered once":  {func(*env, *v1alpha1.GitEvent) {}, day},
		"delivered again": {func(w *env, e *v1alpha1.GitEvent) { w.redelivered(e, w.clock.Now()) }, 4 * day},
		"noted before":    {func(w *env, e *v1alpha1.GitEvent) { w.redelivered(e, w.clock.Now().Add(-9*day)) }, day},
		"noted nonsense": {func(_ *env, e *v1alpha1.GitEvent) {
			e.Annotations = map[string]string{plumbline.DeliveredAgainAnnotation: "tomorrow"}
		}, day},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t)
			e := w.settled("k")
			w.later(3 * day)
			c.note(w, e)
			w.later(c.left - time.Minute)
			w.pass()
			if w.events[e.Name] == nil {
				t.Fatal("it is forgotten too early")
			}
			w.later(time.Minute + time.Second)
			w.pass()
			if w.events[e.Name] != nil {
				t.Error("it is not forgotten")
			}
		})
	}
}

// A redelivery may be recorded after the sweep has read the event. The sweep deletes only what its
// tombstone records.
func TestRedeliveryDuringAnEvictionIsInTheTombstone(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.settings = map[string]string{"settled-cap": "100"}
	w.restart()
	e := w.settled("k")
	w.later(24 * time.Hour)
	w.fill(100)
	w.later(youngest)
	noted := time.Time{}
	w.answer = func(call, _ string) error {
		if call == "create tombstonepages" && noted.IsZero() {
			noted = w.clock.Now()
			w.redelivered(e, noted)
		}
		return nil
	}
	w.pass()
	if w.events[e.Name] == nil {
		t.Fatal("it is deleted with the note")
	}
	w.pass()
	entry, found := w.buried(e)
	if least := noted.Add(4 * 24 * time.Hour).Truncate(time.Second); !found || w.events[e.Name] != nil ||
		entry.Until.Before(least) {
		t.Errorf("its tombstone is %+v (%v), want it to last until %v", entry, found, least)
	}
}

// A receiver's clock may be a year ahead.
func TestRedeliveryInTheFutureIsBounded(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.settings = map[string]string{"settled-cap": "100"}
	w.restart()
	e := w.settled("k")
	w.redelivered(e, w.clock.Now().Add(365*24*time.Hour))
	w.later(24 * time.Hour)
	w.fill(100)
	w.later(youngest)
	w.pass()
	if entry, found := w.buried(e); !found || entry.Until.After(w.clock.Now().Add(4*24*time.Hour)) {
		t.Errorf("its tombstone is %+v (%v)", entry, found)
	}
}
