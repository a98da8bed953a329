// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// deliveredAgain notes in an event that its delivery has come again, as a receiver does.
func (w *world) deliveredAgain(e *v1alpha1.GitEvent, at time.Time) {
	e.Annotations = map[string]string{plumbline.DeliveredAgainAnnotation: at.UTC().Format(time.RFC3339)}
	e.ResourceVersion += "0"
}

// What was delivered again is remembered from then, as a stub and, above the cap, by a tombstone. A
// receiver whose clock is ahead, or who writes nonsense, makes nothing stay for longer than the
// rest of its time.
func TestWhatIsDeliveredAgainIsRememberedFromThen(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		note func(w *world, e *v1alpha1.GitEvent)
		left time.Duration // of its time, three days after it came
	}{
		"delivered once":  {func(*world, *v1alpha1.GitEvent) {}, day},
		"delivered again": {func(w *world, e *v1alpha1.GitEvent) { w.deliveredAgain(e, w.clock.Now()) }, 4 * day},
		"noted before":    {func(w *world, e *v1alpha1.GitEvent) { w.deliveredAgain(e, w.clock.Now().Add(-9*day)) }, day},
		"noted nonsense": {func(_ *world, e *v1alpha1.GitEvent) {
			e.Annotations = map[string]string{plumbline.DeliveredAgainAnnotation: "tomorrow"}
		}, day},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
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

// A redelivery may be noted after the sweep has read the event: what it deletes is what its
// tombstone tells of.
func TestARedeliveryIsNotedWhileItsEventIsEvicted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
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
			w.deliveredAgain(e, noted)
		}
		return nil
	}
	w.pass()
	if w.events[e.Name] == nil {
		t.Fatal("it is deleted with the note")
	}
	w.pass()
	entry, found := w.buried(e)
	if least := noted.Add(4 * 24 * time.Hour).Truncate(time.Second); !found || w.events[e.Name] != nil || entry.Until.Before(least) {
		t.Errorf("its tombstone is %+v (%v), want it to last until %v", entry, found, least)
	}
}

// A note of a receiver whose clock is a year ahead does not make a tombstone of a year.
func TestANoteOfAReceiverThatIsAheadIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settings = map[string]string{"settled-cap": "100"}
	w.restart()
	e := w.settled("k")
	w.deliveredAgain(e, w.clock.Now().Add(365*24*time.Hour))
	w.later(24 * time.Hour)
	w.fill(100)
	w.later(youngest)
	w.pass()
	if entry, found := w.buried(e); !found || entry.Until.After(w.clock.Now().Add(4*24*time.Hour)) {
		t.Errorf("its tombstone is %+v (%v)", entry, found)
	}
}
