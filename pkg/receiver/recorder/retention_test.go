// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/tombstone"
)

// expire deletes a settled event whose retention has passed since it was last delivered, as the
// sweep does.
func (e *env) expire(name string) {
	e.t.Helper()
	events := e.client.PlumblineV1alpha1().GitEvents(systemNamespace)
	event, err := events.Get(e.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	last := event.CreationTimestamp.Time
	if at, err := time.Parse(time.RFC3339, event.Annotations[plumbline.DeliveredAgainAnnotation]); err == nil {
		last = at
	}
	if e.clock.Since(last) >= retention {
		if err := events.Delete(e.t.Context(), name, metav1.DeleteOptions{}); err != nil {
			e.t.Fatal(err)
		}
	}
}

func evictedOrNot() map[string]bool {
	return map[string]bool{"its record exists": false, "it has a tombstone": true}
}

// A redelivery can be sent again for as long as the delivery. Each one extends the retention of the
// record or tombstone, and none of them runs.
func TestRedeliveryExtendsTheRetention(t *testing.T) {
	for name, evicted := range evictedOrNot() {
		for body, d := range map[string]func() delivery{
			"that does not identify its event": func() delivery { return push("k1") },
			"that identifies its event": func() delivery {
				return pushAt("k1", time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC))
			},
			"in payloads": func() delivery { return large("k1") },
		} {
			t.Run(name+", a body "+body, func(t *testing.T) {
				e := newEnv(t)
				first, _ := e.record(d())
				e.settle(first, settled(v1alpha1.DispositionRuns))
				if evicted {
					e.evict(first)
				}
				for n := range 10 {
					e.pass(3*day - time.Minute) // as long as GitHub sends a delivery again
					if _, created := e.record(d()); created {
						t.Fatalf("redelivery %d is recorded again", n+1)
					}
					if !evicted {
						e.expire(first)
					}
				}
				e.pass(retention)
				if evicted {
					e.record(d())
					e.wantEvents(1) // the retention is over
					return
				}
				e.expire(first)
				e.wantEvents(0)
			})
		}
	}
}

// The redelivery of an event that may run again has another name. The next redelivery finds both.
func TestRedeliveryOfARefusedEventRunsOnce(t *testing.T) {
	for name, evicted := range evictedOrNot() {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			first, _ := e.record(push("k1"))
			e.settle(first, settled(v1alpha1.DispositionRefused))
			if evicted {
				e.evict(first)
			}
			e.pass(3 * day)
			again, _ := e.record(push("k1"))
			if again != first+"-r1" {
				t.Fatalf("the second record is %s", again)
			}
			e.settle(again, settled(v1alpha1.DispositionRuns))
			for range 5 {
				e.pass(3 * day)
				if name, created := e.record(push("k1")); created {
					t.Fatalf("recorded as %s", name)
				}
			}
		})
	}
}

// A redelivery is noted at most once an hour, and not for copies that arrive with the delivery.
func TestRedeliveryIsNotedOnceAnHour(t *testing.T) {
	for name, evicted := range evictedOrNot() {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			first, _ := e.record(push("k1"))
			e.settle(first, settled(v1alpha1.DispositionRuns))
			if evicted {
				e.evict(first)
			}
			writes := func() (n int) {
				for _, action := range e.client.Actions() {
					if action.GetVerb() == "patch" {
						n++
					}
				}
				return n
			}
			for _, c := range []struct {
				after time.Duration
				want  int
			}{{time.Minute, 0}, {time.Hour, 1}, {time.Minute, 1}, {50 * time.Minute, 1}, {20 * time.Minute, 2}} {
				e.pass(c.after)
				e.record(push("k1"))
				if got := writes(); got != c.want {
					t.Errorf("%v later: %d writes, want %d", c.after, got, c.want)
				}
			}
		})
	}
}

// If the note of a redelivery fails, the delivery must be sent again and nothing is recorded. If
// the record was deleted or the page changed in between, the recorder looks again.
func TestRedeliveryWhoseNoteFails(t *testing.T) {
	for name, c := range map[string]struct {
		evicted bool
		err     error
		refused bool
	}{
		"the event cannot be written": {false, errors.New("unreachable"), true},
		"the receiver lacks the right": {
			false, apierrors.NewForbidden(v1alpha1.Resource("gitevents"), "e", errors.New("no")), true,
		},
		"the event is deleted in between": {false, apierrors.NewNotFound(v1alpha1.Resource("gitevents"), "e"), false},
		"the page cannot be written":      {true, errors.New("unreachable"), true},
		"the page is changed in between":  {true, apierrors.NewInvalid(v1alpha1.Kind("TombstonePage"), "t", nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			first, _ := e.record(push("k1"))
			e.settle(first, settled(v1alpha1.DispositionRuns))
			if c.evicted {
				e.evict(first)
			}
			e.pass(2 * day)
			failed := false
			e.client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				if failed {
					return false, nil, nil
				}
				failed = true
				if apierrors.IsNotFound(c.err) {
					e.evict(first)
				}
				return true, nil, c.err
			})
			if c.refused {
				_ = e.refuse(push("k1"))
			}
			if name, created := e.record(push("k1")); created || !failed {
				t.Errorf("recorded again as %s; the note failed: %t", name, failed)
			}
		})
	}
}

// Extending one tombstone leaves the other entries of its page as they are.
func TestRedeliveryExtendsOneTombstone(t *testing.T) {
	e := newEnv(t)
	first, _ := e.record(push("k1"))
	e.settle(first, settled(v1alpha1.DispositionRuns))
	e.evict(first)
	pages := e.client.PlumblineV1alpha1().TombstonePages(systemNamespace)
	page, err := pages.Get(t.Context(), tombstone.PageOf(first), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	page.Entries = slices.Concat([]string{"a-" + first + " 0123456789abcdef done 1767441845"}, page.Entries,
		[]string{"z-" + first + " 0123456789abcdef again 1767441845"})
	if page, err = pages.Update(t.Context(), page, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.pass(day)
	e.record(push("k1"))
	moved, err := pages.Get(t.Context(), page.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	entry, found := tombstone.Find(moved, first, e.clock.Now())
	if !found || !entry.Until.Equal(e.clock.Now().Add(retention).Truncate(time.Second)) || entry.Again {
		t.Errorf("the entry is %+v", entry)
	}
	if !slices.Equal([]string{page.Entries[0], page.Entries[2]}, []string{moved.Entries[0], moved.Entries[2]}) ||
		len(moved.Entries) != 3 {
		t.Errorf("the page is %q, and was %q", moved.Entries, page.Entries)
	}
}
