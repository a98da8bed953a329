// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"fmt"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

// visitor is an event at a service that nobody knows yet. An installation of the App has three
// namespaces.
func visitor(n int, namespace string, installation int64) Request {
	if installation != 0 {
		namespace += fmt.Sprint("-", n%3)
	}
	return Request{Event: fmt.Sprint(namespace, "-", n), Namespace: namespace, Host: "git.example", Installation: installation}
}

// fits is how many more visits there may be at once, which it gives back.
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

// answers lets as many visits as there may be make calls, round by round, that are all answered
// like this.
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

// A service that nobody knows gets four visits at once, one more after each round that it answers
// well, up to its share; half as many when it fails, and at least one; as many as at first when it
// is only late.
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

// What one tenant's use of a GitLab causes, another's does not feel; nor does one installation of
// the App what another causes.
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

// While the limits of a service have no room, nobody is let in, and who waits is woken when they
// have.
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

// What a service bears is forgotten when too many are known, but not that somebody waits for the
// end of its limits.
func TestClosedServiceOpensAfterItsWindowWasEvicted(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 64)
	first, second := visitor(1, "team", 42), visitor(2, "team", 42)
	release := w.begin(first)
	if _, err := w.AcquireService(first); err != nil {
		t.Fatal(err)
	}
	w.alarm(w.now.Add(time.Second)) // e.g. for a turn that is kept
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
