// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// shift plays a workqueue: each event that has a turn ends with each step, the longest first, and
// who is woken comes. It returns the namespaces in the order in which they came.
func (w *env) shift(begun []func(), visits map[string]Request, steps int) (order []string) {
	w.t.Helper()
	for range steps {
		begun[0]()
		begun = begun[1:]
		for _, event := range w.woken {
			release := w.begin(visits[event])
			if release == nil {
				w.t.Fatalf("%s was woken and has no turn", event)
			}
			begun, order = append(begun, release), append(order, visits[event].Namespace)
		}
		w.woken = nil
	}
	return order
}

// Whoever waits is woken once, in the order of coming, and finds a turn. Until then it may come as
// often as it likes: it neither jumps nor loses its place.
func TestQueuedEventsAreWokenInOrder(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 16)
	begun, visits, want := []func(){}, map[string]Request{}, []string{}
	for range 3 {
		begun = append(begun, w.begin(w.visit("team", "git.example", 0)))
	}
	for range 3000 {
		v := w.visit("team", "git.example", 0)
		visits[v.Event], want = v, append(want, v.Event)
		if w.begin(v) != nil {
			t.Fatal("there are more turns than the share")
		}
	}
	if diff := cmp.Diff(map[string]int{NamespaceHost: 3000}, w.Waiting()); diff != "" {
		t.Error(diff)
	}
	var got []string
	for n := range want {
		if n < len(want)-1 && w.begin(visits[want[len(want)-1]]) != nil {
			t.Fatal("the last one jumped because it came again")
		}
		begun[0]()
		got = append(got, w.woken...)
		for _, event := range w.woken {
			begun = append(begun[1:], w.begin(visits[event]))
		}
		w.woken = nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, release := range begun {
		release()
	}
	w.nothingLeft()
}

// S6: three tenants with a backlog do not starve a fourth at a GitLab that they share: of so many
// turns that become free it gets every fourth, and the first one.
func TestTenantAmongBusyTenantsGetsItsShare(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 64)
	begun, visits := []func(){}, map[string]Request{}
	come := func(namespace string, n int) {
		for range n {
			v := w.visit(namespace, "git.example", 0)
			visits[v.Event] = v
			if release := w.begin(v); release != nil {
				begun = append(begun, release)
			}
		}
	}
	for _, tenant := range []string{"a", "b", "c"} {
		come(tenant, 500)
	}
	come("d", 100)
	if len(begun) != 32 {
		t.Fatalf("%d have a turn, want the half", len(begun))
	}
	order := w.shift(begun, visits, 200)
	got := map[string]int{}
	for _, namespace := range order {
		got[namespace]++
	}
	if got["d"] < 50 || order[0] != "d" {
		t.Errorf("of 200 turns %v, the first to %s; want every fourth for d, and the first", got, order[0])
	}
}

// An installation has its share of a host however many namespaces another one has.
func TestInstallationsAlternate(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 16)
	begun, visits := []func(){}, map[string]Request{}
	come := func(namespace string, installation int64, n int) {
		for range n {
			v := w.visit(namespace, "github.com", installation)
			visits[v.Event] = v
			if release := w.begin(v); release != nil {
				begun = append(begun, release)
			}
		}
	}
	for n := range 50 {
		come(fmt.Sprint("large-", n), 1, 10)
	}
	come("small", 2, 3)
	come("alone", 3, 100)
	got := map[string]int{}
	for _, namespace := range w.shift(begun, visits, 90) {
		got[namespace]++
	}
	if got["alone"] < 22 { // its share is three of the twelve of the host
		t.Errorf("an installation of one namespace got %d of 90 turns beside one of 50", got["alone"])
	}
}

// An event that waits for a visit and is woken by something else does what needs no Git service,
// keeps its place, and is called only when that is over.
func TestQueuedEventMayBeReconciledMeanwhile(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 16)
	var begun []func()
	for range 3 {
		begun = append(begun, w.begin(w.visit("team", "git.example", 0)))
	}
	first, second := w.visit("team", "git.example", 0), w.visit("team", "git.example", 0)
	release, err := w.AcquireWorker(first, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AcquireService(first); fault.Of(err) == nil {
		t.Fatal("there is a visit too many")
	}
	w.begin(second)
	release()
	release, err = w.AcquireWorker(first, false) // its run has ended
	if err != nil {
		t.Fatalf("what needs no Git service waits for one: %v", err)
	}
	begun[0]()
	if diff := cmp.Diff([]string{second.Event}, w.woken); diff != "" {
		t.Error("while the first is worked on", diff)
	}
	begun[1]()
	release()
	if diff := cmp.Diff([]string{second.Event, first.Event}, w.woken); diff != "" {
		t.Error(diff)
	}
	release, err = w.AcquireWorker(first, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AcquireService(first); err != nil {
		t.Errorf("it was called and has no visit: %v", err)
	}
	release()
}

// An event that has begun, and has e.g. the end of a run to report, does not wait until all have
// begun that came before it.
func TestFreshAndBegunEventsAlternate(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 16)
	begun, visits := []func(){}, map[string]Request{}
	for range 3 {
		begun = append(begun, w.begin(w.visit("team", "git.example", 0)))
	}
	late := w.visit("team", "git.example", 0)
	for range 100 {
		v := w.visit("team", "git.example", 0)
		visits[v.Event] = v
		w.begin(v)
	}
	for n := range 10 {
		v := late
		v.Event = fmt.Sprint("late-", n)
		visits[v.Event] = v
		release, err := w.AcquireWorker(v, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.AcquireService(v); err == nil {
			t.Fatal("there is a visit too many")
		}
		release()
	}
	called := 0
	for range 20 {
		begun[0]()
		for _, event := range w.woken {
			if strings.HasPrefix(event, "late-") {
				called++
			}
			begun = append(begun[1:], w.begin(visits[event]))
		}
		w.woken = nil
	}
	if called != 10 {
		t.Errorf("of 20 turns %d were for the ten that have begun, want half of the turns", called)
	}
}

// Who waits for work alone, because its plan is made, and who waits for a visit take the turns of
// their namespace in turn.
func TestWorkerAndServiceQueuesAlternate(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 4)
	hold := func(event string) func() {
		release, err := w.AcquireWorker(Request{Event: event, Namespace: "team"}, false)
		if err != nil {
			return nil
		}
		return release
	}
	begun := []func(){hold("a"), hold("b")}
	for n := range 10 {
		hold(fmt.Sprint("work-", n))
		w.begin(Request{Event: fmt.Sprint("visit-", n), Namespace: "team", Host: "git.example"})
	}
	kinds := map[byte]int{}
	for range 8 {
		begun[0]()
		kinds[w.woken[0][0]]++
		begun, w.woken = append(begun[1:], hold(w.woken[0])), nil
	}
	if kinds['v'] < 2 || kinds['w'] < 2 {
		t.Errorf("of eight turns %d were visits' and %d others'", kinds['v'], kinds['w'])
	}
}

// However many tenants wait at one host, to find out whose turn it is takes no time that counts.
func BenchmarkNext(b *testing.B) {
	w := newEnv(&testing.T{}, 16)
	var release func()
	for n := range 5000 {
		if r := w.begin(w.visit(fmt.Sprint("team-", n), "github.com", int64(n+1))); r != nil {
			release = r
		}
	}
	for b.Loop() {
		release()
		event := w.woken[len(w.woken)-1]
		release = w.begin(Request{Event: event, Namespace: "x"})
		w.begin(w.visit("team-"+event, "github.com", int64(w.events+1)))
	}
}
