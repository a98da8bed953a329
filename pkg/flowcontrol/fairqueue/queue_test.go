// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// shift simulates a workqueue: with each step the oldest event with slots ends, and the events that
// are woken start. It returns their namespaces in order.
func (w *env) shift(begun []func(), visits map[string]Request, steps int) (order []string) {
	w.t.Helper()
	for range steps {
		begun[0]()
		begun = begun[1:]
		for _, event := range w.woken {
			release := w.begin(visits[event])
			if release == nil {
				w.t.Fatalf("%s was woken and has no slot", event)
			}
			begun, order = append(begun, release), append(order, visits[event].Namespace)
		}
		w.woken = nil
	}
	return order
}

// A queued event is woken once, in the order of arrival, and gets its slots. If it is reconciled
// before, its position does not change.
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
			t.Fatal("there are more slots than the limit")
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

// S6: three tenants with a backlog do not starve a fourth one at a shared GitLab: it gets the first
// slot that is released, and then every fourth one.
func TestTenantAmongBusyTenantsGetsItsShare(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 64)
	begun, visits := []func(){}, map[string]Request{}
	arrive := func(namespace string, n int) {
		for range n {
			v := w.visit(namespace, "git.example", 0)
			visits[v.Event] = v
			if release := w.begin(v); release != nil {
				begun = append(begun, release)
			}
		}
	}
	for _, tenant := range []string{"a", "b", "c"} {
		arrive(tenant, 500)
	}
	arrive("d", 100)
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
	arrive := func(namespace string, installation int64, n int) {
		for range n {
			v := w.visit(namespace, "github.com", installation)
			visits[v.Event] = v
			if release := w.begin(v); release != nil {
				begun = append(begun, release)
			}
		}
	}
	for n := range 50 {
		arrive(fmt.Sprint("large-", n), 1, 10)
	}
	arrive("small", 2, 3)
	arrive("alone", 3, 100)
	got := map[string]int{}
	for _, namespace := range w.shift(begun, visits, 90) {
		got[namespace]++
	}
	if got["alone"] < 22 { // its share is three of the twelve of the host
		t.Errorf("an installation of one namespace got %d of 90 turns beside one of 50", got["alone"])
	}
}

// A queued event that something else wakes does what needs no Git service, stays queued, and gets
// its slots only when that reconcile has ended.
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

// A started event, for example one with a result to report, does not wait for all fresh events that
// arrived before it.
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

// Events that wait for a worker only, and events that also wait for a Git service, alternate within
// a namespace.
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

// Finding the next event is fast, however many tenants wait at one host.
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
