// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"fmt"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

// visitor returns the request of an event at an unknown service. An installation of the App has
// three namespaces.
func visitor(n int, namespace string, installation int64) Request {
	if installation != 0 {
		namespace += fmt.Sprint("-", n%3)
	}
	return Request{
		Event: fmt.Sprint(namespace, "-", n), Namespace: namespace, Host: "git.example", Installation: installation,
	}
}

// fits returns how many more slots are free, and releases them.
func (w *env) fits(namespace string, installation int64) int {
	var releases []func()
	defer func() {
		for _, release := range releases {
			release()
		}
	}()
	for n := 0; ; n++ {
		v := visitor(n, namespace, installation)
		release, err := w.AcquireService(v)
		if err != nil {
			w.Remove(v.Event)
			return n
		}
		releases = append(releases, release)
	}
}

// answers uses all free slots for calls with the same answer, round by round.
func (w *env) answers(rounds int, namespace string, installation int64, took time.Duration, strained bool) {
	for range rounds {
		n := w.fits(namespace, installation)
		var releases []func()
		for i := range n {
			release, _ := w.AcquireService(visitor(i, namespace, installation))
			releases = append(releases, release)
		}
		began := w.now
		w.pass(took)
		for i, release := range releases {
			w.Observe(visitor(i, namespace, installation), Answer{Began: began, Strained: strained})
			defer release()
		}
		for _, release := range releases {
			release()
		}
	}
}

// An unknown service gets four slots, one more after each round of good answers, up to its limit;
// half as many when it fails, and at least one; four when it is only late.
func TestWindowFollowsTheServicesAnswers(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 64)
	for _, step := range []struct {
		says     string
		rounds   int
		took     time.Duration
		strained bool
		want     int
	}{
		{"at first", 0, 0, false, firstWindow},
		{"it answers well", 4, 100 * time.Millisecond, false, firstWindow + 3},
		{"for long", 100, 100 * time.Millisecond, false, 32},
		{"it is late once", 1, 3 * time.Second, false, 16},
		{"it is late always", 10, 3 * time.Second, false, firstWindow},
		{"it fails once", 1, 100 * time.Millisecond, true, firstWindow / 2},
		{"it hangs", 10, 15 * time.Second, true, 1},
		{"it is well again", 40, 100 * time.Millisecond, false, 32},
	} {
		w.answers(step.rounds, "team", 42, step.took, step.strained)
		if got := w.fits("other", 42); got != step.want {
			t.Errorf("%s: there are %d visits, want %d", step.says, got, step.want)
		}
	}
}

// A tenant at a GitLab does not change another tenant's window, nor does one installation of the
// App another one's.
func TestWindowsOfTenantsAreIndependent(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 64)
	w.answers(3, "team", 0, time.Second, true)
	w.answers(3, "org", 1, time.Second, true)
	if team, other := w.fits("team", 0), w.fits("other", 0); team != 1 || other != firstWindow {
		t.Errorf("the tenant whose calls fail has %d visits, another one %d", team, other)
	}
	if org, other := w.fits("org", 1), w.fits("org", 2); org != 1 || other != firstWindow {
		t.Errorf("the installation whose calls fail has %d visits, another one %d", org, other)
	}
}

// While the limits of a service allow no call, it has no slots. Queued events are woken afterwards.
func TestClosedServiceHasNoSlots(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 64)
	first, second := visitor(1, "team", 42), visitor(2, "team", 42)
	release := w.begin(first)
	if _, err := w.AcquireService(first); err != nil {
		t.Fatal(err)
	}
	w.Observe(first, Answer{Began: w.now, Closed: 7 * time.Second})
	release()
	if w.begin(second) != nil {
		t.Fatal("a visit that can do nothing")
	}
	w.pass(7*time.Second - 1)
	if len(w.woken) != 0 {
		t.Fatalf("%v were woken too early", w.woken)
	}
	if w.pass(1); len(w.woken) != 1 {
		t.Fatalf("%v were woken", w.woken)
	}
	if _, err := w.AcquireService(second); fault.Of(err) != nil {
		t.Error(err)
	}
}

// A window may be evicted while events wait for the end of the service's limits. They are woken
// anyway.
func TestClosedServiceOpensAfterItsWindowWasEvicted(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 64)
	first, second := visitor(1, "team", 42), visitor(2, "team", 42)
	release := w.begin(first)
	if _, err := w.AcquireService(first); err != nil {
		t.Fatal(err)
	}
	w.alarm(w.now.Add(time.Second)) // e.g. for a reserved slot
	w.Observe(first, Answer{Began: w.now, Closed: 7 * time.Second})
	release()
	if w.begin(second) != nil {
		t.Fatal("a visit that can do nothing")
	}
	for n := range recent.DefaultMax {
		w.limiter.window(key{Installation, fmt.Sprint("other/", n)})
	}
	if w.pass(7 * time.Second); len(w.woken) != 1 {
		t.Fatalf("%v were woken", w.woken)
	}
}
