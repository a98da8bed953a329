// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// settled makes a record one of an event that is over.
func settled(e *v1alpha1.GitEvent) { e.Status.Phase = v1alpha1.PhaseSettled }

// When there are as many settled events as are kept, older ones were evicted: a head that is as old
// as these may have had a record, and is not named. What is kept for longer than others of its age
// tells nothing about them.
func TestHeadsWhoseRecordsMayBeEvicted(t *testing.T) {
	for name, c := range map[string]struct {
		stubs  int
		before func(w *world)
		want   string
	}{
		"as many as are kept, all of them newer": {100, func(*world) {}, "True Called"},
		"a few less":                             {95, func(*world) {}, "True Called"},
		"not as many":                            {50, func(*world) {}, "False HeadsNotRecorded"},
		"one is older":                           {100, func(w *world) { w.record(1000, commit("c"), settled) }, "False HeadsNotRecorded"},
		"an older one is not over":               {100, func(w *world) { w.record(1000, commit("c")) }, "True Called"},
		"an older one was over later": {100, func(w *world) {
			over := metav1.NewTime(w.clock.Now().Add(5 * time.Hour))
			w.record(1000, commit("c"), settled, func(e *v1alpha1.GitEvent) { e.Status.SettledAt = &over })
		}, "True Called"},
		"an older one is spared": {100, func(w *world) {
			w.record(1000, commit("c"), settled, func(e *v1alpha1.GitEvent) { e.Status.Unreported = true })
		}, "True Called"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.process.settings().SettledCap = 100
			c.before(w)
			w.clock.Step(time.Minute)
			w.move(0, commit("a"))
			w.clock.Step(5 * time.Hour)
			for n := range c.stubs {
				w.record(int64(n+1), commit("b"), settled)
			}
			w.pause(10 * time.Minute)
			w.run(10 * time.Minute)
			w.wantCondition(c.want)
		})
	}
}

// many are settled events without an end, as many on a page as are asked for.
type many struct {
	lists int
	left  *int64
	at    time.Time
}

func (m *many) List(_ context.Context, o metav1.ListOptions) (*v1alpha1.GitEventList, error) {
	m.lists++
	page := &v1alpha1.GitEventList{ListMeta: metav1.ListMeta{Continue: "more", RemainingItemCount: m.left}}
	for n := range o.Limit {
		e := v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(m.at.Add(time.Duration(n) * time.Minute))}}
		settled(&e)
		page.Items = append(page.Items, e)
	}
	return page, nil
}

// Not all events are read to see how old the oldest are, and one page when there are far from too
// many.
func TestFewEventsAreReadForTheirAge(t *testing.T) {
	w := newWorld(t)
	few, nearly := int64(5000), int64(8900)
	for name, c := range map[string]struct {
		left  *int64
		lists int
		want  time.Time
	}{
		"few":                      {&few, 1, time.Time{}},
		"nearly as many as may be": {&nearly, samplePages, w.clock.Now()},
		"not counted":              {nil, samplePages, w.clock.Now()},
	} {
		events := &many{left: c.left, at: w.clock.Now()}
		w.process.events = events
		if got, err := w.process.keptSince(t.Context()); err != nil || !got.Equal(c.want) || events.lists != c.lists {
			t.Errorf("%s: %v, %v, after %d lists", name, got, err, events.lists)
		}
	}
}
