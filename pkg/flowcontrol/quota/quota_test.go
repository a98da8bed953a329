// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// env is a ledger with 10 events and 10,000 bytes for a Repository, 25 and 25,000 for a
// namespace, 100 and 100,000 in all.
type env struct {
	*testing.T
	*Ledger
	clock   *clocktesting.FakePassiveClock
	crossed []Scope
}

func newEnv(t *testing.T) *env {
	w := &env{T: t, clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	w.Ledger = New(func() Limits { return Limits{100, 100_000} }, w.clock,
		func(s Scope) { w.crossed = append(w.crossed, s) })
	return w
}

func of(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// admitted returns how many of n events are admitted.
func (w *env) admitted(prefix string, r types.NamespacedName, n int, bytes int64) (admitted int, over Scope) {
	for i := range n {
		if s, ok := w.Admit(fmt.Sprint(prefix, i), Use{Repository: r, Bytes: bytes}); ok {
			admitted++
		} else {
			over = s
		}
	}
	return admitted, over
}

// load is a number of events, and the bytes of each.
type load struct {
	events int
	bytes  int64
}

func (w *env) want(sentence string, r types.NamespacedName, l load, admitted int, over Scope) {
	w.Helper()
	if got, scope := w.admitted(sentence, r, l.events, l.bytes); got != admitted || scope != over {
		w.Errorf("%s: %d of %d events are admitted, then %q is used up; want %d and %q", sentence, got, l.events,
			scope.Reason(), admitted, over.Reason())
	}
}

func TestEachBudgetLimitsEvents(t *testing.T) {
	w := newEnv(t)
	w.want("a Repository's", of("one", "a"), load{20, 1}, 10, Scope{Namespace: "one", Name: "a"})
	w.want("another one's", of("one", "b"), load{20, 1}, 10, Scope{Namespace: "one", Name: "b"})
	w.want("of a namespace with two that are full", of("one", "c"), load{20, 1}, 5, Scope{Namespace: "one"})
	for i := range 7 {
		w.want(fmt.Sprint("another tenant's ", i), of(fmt.Sprint("tenant-", i), "a"), load{10, 1}, 10, Scope{})
	}
	w.want("all together", of("late", "a"), load{10, 1}, 5, Scope{})
	if _, ok := w.Admit("last", Use{Repository: of("later", "a"), Bytes: 1}); ok {
		t.Error("one more than the total is admitted")
	}
}

// The last admitted event may exceed a budget, so that any delivery fits into an unused budget.
func TestBudgetLimitsBytes(t *testing.T) {
	w := newEnv(t)
	w.want("large ones", of("one", "a"), load{5, 6000}, 2, Scope{Namespace: "one", Name: "a"})
	w.want("one that is larger than the budget", of("one", "b"), load{2, 30_000}, 1, Scope{Namespace: "one", Name: "b"})
	w.want("of the same namespace", of("one", "c"), load{1, 1}, 0, Scope{Namespace: "one"})
}

func TestEventCountsOnce(t *testing.T) {
	w := newEnv(t)
	r := of("one", "a")
	for range 20 {
		if _, ok := w.Admit("e", Use{Repository: r, Bytes: 1}); !ok {
			t.Fatal("the same event is refused")
		}
	}
	w.want("others", r, load{20, 1}, 9, Scope{Namespace: "one", Name: "a"})
	if _, ok := w.Admit("e", Use{Repository: r, Bytes: 1}); !ok {
		t.Error("an attempt loses its place")
	}
	if _, ok := w.Admit("f", Use{Repository: r, Bytes: 1}); ok {
		t.Error("an attempt has two places")
	}
	for i := range 5 {
		w.Seen(fmt.Sprint("of another receiver ", i), Use{Repository: r, Bytes: 1})
	}
	if _, ok := w.Admit("e", Use{Repository: r, Bytes: 1}); ok || w.used[Scope{Namespace: "one", Name: "a"}].Events != 15 {
		t.Errorf("a second attempt is admitted past the budget, or the first one is forgotten: %v", w.used)
	}
	w.Seen("e", Use{Repository: r, Bytes: 1})
	if _, ok := w.Admit("e", Use{Repository: r, Bytes: 1}); !ok {
		t.Error("an event that is there is refused: creating it says that it is")
	}
}

func TestReleasedEventDoesNotCount(t *testing.T) {
	w := newEnv(t)
	r := of("one", "a")
	w.admitted("dropped-", r, 10, 5000)
	for i := range 10 {
		w.Release(fmt.Sprint("dropped-", i))
	}
	w.want("events after attempts that wrote nothing", r, load{10, 1}, 10, Scope{})
	w.Seen("x", Use{Repository: of("two", "a"), Bytes: 1})
	w.Release("x")
	if w.used[Scope{Namespace: "two", Name: "a"}].Events != 1 {
		t.Error("an event that the watch has shown is taken back")
	}
}

// A payload without an event exists until the sweep deletes it: its bytes count, but not as an
// event.
func TestOrphanedPayloadsCount(t *testing.T) {
	w := newEnv(t)
	r := of("one", "a")
	for i := range 30 {
		name := fmt.Sprint("orphan-", i)
		if _, ok := w.Admit(name, Use{Repository: r, Bytes: 1000}); ok {
			w.Orphaned(name, 1000)
		}
	}
	if used := w.used[Scope{Namespace: "one", Name: "a"}]; used != (Limits{0, 10_000}) {
		t.Errorf("%+v are used, want the bytes of ten", used)
	}
	w.clock.SetTime(w.clock.Now().Add(orphanedFor))
	w.want("events after the sweep", r, load{20, 1}, 10, Scope{Namespace: "one", Name: "a"})
}

// The watch never shows an event that is created and settled while the watch is interrupted.
func TestUnseenEventCountsForALimitedTime(t *testing.T) {
	w := newEnv(t)
	r := of("one", "a")
	w.want("events", r, load{11, 1}, 10, Scope{Namespace: "one", Name: "a"})
	w.Seen("events0", Use{Repository: r, Bytes: 1})
	w.clock.SetTime(w.clock.Now().Add(unseenFor))
	w.want("more events", r, load{20, 1}, 9, Scope{Namespace: "one", Name: "a"})
}

func TestFullHasHysteresis(t *testing.T) {
	w := newEnv(t)
	r := of("one", "a")
	for i := range 12 {
		w.Seen(fmt.Sprint(i), Use{Repository: r, Bytes: 1})
	}
	if s, full := w.Full(r); !full || s != (Scope{Namespace: "one", Name: "a"}) {
		t.Errorf("%v, %v", s, full)
	}
	if _, full := w.Full(of("one", "b")); full {
		t.Error("another Repository is full")
	}
	for i := range 4 {
		w.Gone(fmt.Sprint(i))
		w.Seen(fmt.Sprint(i), Use{Repository: r, Bytes: 1})
		w.Gone(fmt.Sprint(i))
	}
	if _, full := w.Full(r); !full {
		t.Error("with eight of ten it is free already")
	}
	w.Gone("4")
	if _, full := w.Full(r); full {
		t.Error("with seven of ten it is still full")
	}
	if want := []Scope{{Namespace: "one", Name: "a"}, {Namespace: "one", Name: "a"}}; !slices.Equal(w.crossed, want) {
		t.Errorf("crossed %v, want %v", w.crossed, want)
	}
	for i := range 12 {
		w.Gone(fmt.Sprint(i))
	}
	if len(w.used)+len(w.entries)+len(w.full) != 0 {
		t.Errorf("something is left: %v %v %v", w.used, w.entries, w.full)
	}
}

// The events of a waiting Repository do not change, so the change of the limit itself must wake it.
func TestFullFollowsTheLimits(t *testing.T) {
	limits := Limits{100, 100_000}
	l := New(func() Limits { return limits }, clocktesting.NewFakePassiveClock(time.Unix(0, 0)), nil)
	r := of("one", "a")
	for i := range 10 {
		l.Seen(fmt.Sprint(i), Use{Repository: r, Bytes: 1})
	}
	for _, step := range []struct {
		events int
		full   bool
	}{{100, true}, {200, false}, {100, true}, {50, true}} {
		limits.Events = step.events
		if _, full := l.Full(r); full != step.full {
			t.Errorf("with %d events in all allowed: %t, want %t", step.events, full, step.full)
		}
	}
}

// One pull request may have a quarter of its Repository's events, or 10, so that other pull
// requests get theirs. When the Repository has reached its own limit, the pull request gets none.
func TestPullRequestHasABudget(t *testing.T) {
	t.Parallel()
	for events, want := range map[int]int{1000: 25, 100: 10, 50: 5} {
		w := newEnv(t)
		w.Ledger = New(func() Limits { return Limits{events, 100_000} }, w.clock, nil)
		admit := func(name, subject string) (Scope, bool) {
			return w.Admit(name, Use{Repository: of("one", "a"), Subject: subject, Bytes: 1})
		}
		admitted, over := 0, Scope{}
		for i := range 200 {
			if s, ok := admit(fmt.Sprint("comment-", i), "pull-1"); ok {
				admitted++
			} else {
				over = s
			}
		}
		if admitted != want {
			t.Errorf("of a total of %d one pull request has %d, want %d (%q)", events, admitted, want, over.Reason())
		}
		if events < 1000 {
			continue
		}
		if over.Reason() != ReasonPull || over.String() != "one pull request of Repository one/a" {
			t.Errorf("used up is %q of %s", over.Reason(), over)
		}
		for name, subject := range map[string]string{"another pull request's": "pull-2", "a push": ""} {
			if s, ok := admit(name, subject); !ok {
				t.Errorf("%s meets %s", name, s.Reason())
			}
		}
		w.Gone("comment-0")
		if s, ok := admit("comment-later", "pull-1"); !ok {
			t.Errorf("one more meets %s when another one has ended", s.Reason())
		}
		if s, full := w.Full(of("one", "a")); full {
			t.Errorf("the Repository's condition says that %s is used up", s)
		}
	}
}

// A watch delivers metadata, whole objects, deletions that it missed, and events of the previous
// version.
func TestLedgerFollowsAWatch(t *testing.T) {
	w := newEnv(t)
	event := &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Name: "e", ManagedFields: []metav1.ManagedFieldsEntry{{}}},
	}
	Annotate(event, of("one", "a"), 4096)
	event.Annotations["other"], event.Labels = "x", map[string]string{plumbline.SubjectLabel: "pull-1", "other": "x"}
	trimmed, err := Trim(event)
	if kept := trimmed.(*metav1.PartialObjectMetadata); err != nil || len(kept.Annotations) != 2 ||
		len(kept.Labels) != 1 || kept.ManagedFields != nil {
		t.Fatalf("%+v, %v", kept, err)
	}
	object := trimmed.(metav1.Object)
	w.Watched(object)
	w.Watched(object)
	w.Watched(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "former"}})
	for scope, want := range map[Scope]Limits{
		{Namespace: "one", Name: "a", Pull: "pull-1"}: {1, 4096}, {Namespace: "one", Name: "a"}: {1, 4096}, {}: {2, 4096},
	} {
		if w.used[scope] != want {
			t.Errorf("used: %v", w.used)
		}
	}
	w.Deleted(object)
	if w.used[Scope{}] != (Limits{1, 0}) || len(w.used) != 1 {
		t.Errorf("used: %v", w.used)
	}
	for _, bytes := range []string{"", "-1", "many"} {
		event.Annotations["plumbline.dev/stored-bytes"] = bytes
		if use := Read(event); use != (Use{}) {
			t.Errorf("%q is read as %+v", bytes, use)
		}
	}
}

func TestTextsForUsers(t *testing.T) {
	got := fmt.Sprint(Scope{Namespace: "one", Name: "a"}, "; ", Scope{Namespace: "one"}, "; ", Scope{}, "; ",
		Limits{10_000, 512 << 20}.In(Scope{Namespace: "one"}))
	if want := "Repository one/a; all Repositories of namespace one; all Repositories of the installation; 2500 events or 128 MiB of payloads and plans"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if strings.Contains(Scope{}.String(), "/") {
		t.Error("the total names a tenant")
	}
}
