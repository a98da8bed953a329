// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"errors"
	"net/http"
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

const day = 24 * time.Hour

// forget does what the sweep does with a settled event: it is deleted when its retention is over,
// counted from when it was last delivered.
func (w *env) forget(name string) {
	w.t.Helper()
	events := w.client.PlumblineV1alpha1().GitEvents(systemNamespace)
	e, err := events.Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	last := e.CreationTimestamp.Time
	if at, err := time.Parse(time.RFC3339, e.Annotations[plumbline.DeliveredAgainAnnotation]); err == nil {
		last = at
	}
	if w.clock.Since(last) >= retention {
		if err := events.Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// A redelivery is a delivery that may be sent again for as long: each one moves the end of what
// remembers it, and none of them runs.
func TestARedeliveryOfARedeliveryDoesNotRun(t *testing.T) {
	for name, evicted := range map[string]bool{"its record is there": false, "it has a tombstone": true} {
		for body, d := range map[string]delivery{"that tells no time": push("k1"), "that tells when": happened("k1", time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)), "of its own": large("k1")} {
			t.Run(name+", a body "+body, func(t *testing.T) {
				w := newEnv(t)
				w.expect(http.StatusAccepted, d)
				first := w.settle(0, settled(v1alpha1.DispositionRuns))
				if evicted {
					w.evict(first)
				}
				for n := range 10 {
					w.clock.SetTime(w.clock.Now().Add(3*day - time.Minute)) // as long as GitHub sends a delivery again
					w.expect(http.StatusAccepted, d)
					if w.counted("duplicate", "AlreadyRecorded") != int64(n+1) {
						t.Fatalf("redelivery %d is recorded anew", n+1)
					}
					if !evicted {
						w.forget(first)
					}
				}
				w.clock.SetTime(w.clock.Now().Add(retention))
				if evicted {
					w.expect(http.StatusAccepted, d)
					w.wantEvents(1) // it is bounded: nobody has sent it for so long
					return
				}
				w.forget(first)
				w.wantEvents(0)
			})
		}
	}
}

// What may run again moves as well: its redelivery runs under another name, and the next one meets
// both.
func TestARedeliveryOfWhatMayRunAgainRunsOnce(t *testing.T) {
	for name, evicted := range map[string]bool{"its record is there": false, "it has a tombstone": true} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.expect(http.StatusAccepted, push("k1"))
			first := w.settle(0, settled(v1alpha1.DispositionRefused))
			if evicted {
				w.evict(first)
			}
			w.clock.SetTime(w.clock.Now().Add(3 * day))
			w.expect(http.StatusAccepted, push("k1"))
			last := len(w.events()) - 1
			again := w.settle(last, settled(v1alpha1.DispositionRuns))
			if again != first+"-r1" {
				t.Fatalf("the second record is %s", again)
			}
			for range 5 {
				w.clock.SetTime(w.clock.Now().Add(3 * day))
				w.expect(http.StatusAccepted, push("k1"))
				w.wantEvents(last + 1)
			}
		})
	}
}

// A record is written at most once an hour, and not by the copies that come with the delivery.
func TestARedeliveryIsNotedOnceAnHour(t *testing.T) {
	for name, evicted := range map[string]bool{"its record is there": false, "it has a tombstone": true} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.expect(http.StatusAccepted, push("k1"))
			first := w.settle(0, settled(v1alpha1.DispositionRuns))
			if evicted {
				w.evict(first)
			}
			writes := func() (n int) {
				for _, action := range w.client.Actions() {
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
				w.clock.SetTime(w.clock.Now().Add(c.after))
				w.expect(http.StatusAccepted, push("k1"))
				if got := writes(); got != c.want {
					t.Errorf("%v later: %d writes, want %d", c.after, got, c.want)
				}
			}
		})
	}
}

// A redelivery whose note may not have been written has to come again; nothing is recorded. One
// that finds the record deleted meanwhile, or the page changed, looks again.
func TestANoteOfARedeliveryThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		evicted bool
		err     error
		status  int
	}{
		"the event cannot be written":    {false, errors.New("unreachable"), http.StatusServiceUnavailable},
		"the receiver may not":           {false, apierrors.NewForbidden(v1alpha1.Resource("gitevents"), "e", errors.New("no")), http.StatusServiceUnavailable},
		"the event is deleted meanwhile": {false, apierrors.NewNotFound(v1alpha1.Resource("gitevents"), "e"), http.StatusAccepted},
		"the page cannot be written":     {true, errors.New("unreachable"), http.StatusServiceUnavailable},
		"the page is changed meanwhile":  {true, apierrors.NewInvalid(v1alpha1.Kind("TombstonePage"), "t", nil), http.StatusAccepted},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.expect(http.StatusAccepted, push("k1"))
			first := w.settle(0, settled(v1alpha1.DispositionRuns))
			if c.evicted {
				w.evict(first)
			}
			w.clock.SetTime(w.clock.Now().Add(2 * day))
			failed := false
			w.client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				if failed {
					return false, nil, nil
				}
				failed = true
				if apierrors.IsNotFound(c.err) {
					w.evict(first)
				}
				return true, nil, c.err
			})
			before := len(w.events())
			w.expect(c.status, push("k1"))
			if got := len(w.events()); !failed || got > before {
				t.Errorf("%d events, and there were %d", got, before)
			}
			w.expect(http.StatusAccepted, push("k1"))
			if w.counted("recorded", "Recorded") != 1 {
				t.Error("it is recorded again")
			}
		})
	}
}

// The other entries of a page stay as they are.
func TestOnlyOneTombstoneMoves(t *testing.T) {
	w := newEnv(t)
	w.expect(http.StatusAccepted, push("k1"))
	first := w.settle(0, settled(v1alpha1.DispositionRuns))
	w.evict(first)
	pages := w.client.PlumblineV1alpha1().TombstonePages(systemNamespace)
	page, err := pages.Get(t.Context(), tombstone.PageOf(first), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	page.Entries = append([]string{"a-" + first + " 0123456789abcdef done 1767441845"}, append(page.Entries, "z-"+first+" 0123456789abcdef again 1767441845")...)
	if page, err = pages.Update(t.Context(), page, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.clock.SetTime(w.clock.Now().Add(day))
	w.expect(http.StatusAccepted, push("k1"))
	moved, err := pages.Get(t.Context(), page.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	entry, found := tombstone.Find(moved, first, w.clock.Now())
	if !found || !entry.Until.Equal(w.clock.Now().Add(retention).Truncate(time.Second)) || entry.Again {
		t.Errorf("the entry is %+v", entry)
	}
	if !slices.Equal([]string{page.Entries[0], page.Entries[2]}, []string{moved.Entries[0], moved.Entries[2]}) || len(moved.Entries) != 3 {
		t.Errorf("the page is %q, and was %q", moved.Entries, page.Entries)
	}
}
