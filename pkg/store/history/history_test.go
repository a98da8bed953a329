// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// pages returns two events a page.
type pages struct {
	events  []v1alpha1.GitEvent
	endless bool
}

func (p pages) List(_ context.Context, o metav1.ListOptions) (*v1alpha1.GitEventList, error) {
	open := o.FieldSelector == "" || o.FieldSelector == v1alpha1.OpenEvents
	if want := "plumbline.dev/subject in (s1)"; o.LabelSelector != want || !open {
		return nil, fmt.Errorf("selectors %q and %q, want %q", o.LabelSelector, o.FieldSelector, want)
	}
	at := 0
	_, _ = fmt.Sscan(o.Continue, &at)
	end := min(at+2, len(p.events))
	list := &v1alpha1.GitEventList{Items: p.events[at:end]}
	if p.endless {
		end = 0
	}
	if p.endless || end < len(p.events) {
		list.Continue = fmt.Sprint(end)
	}
	return list, nil
}

func event(name string, second int64) v1alpha1.GitEvent {
	e := v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: name}}
	e.Spec.ReceivedAt = metav1.NewTime(time.Unix(second, 0))
	return e
}

func TestListReadsAllPagesOldestFirst(t *testing.T) {
	t.Parallel()
	all, err := List(t.Context(), pages{
		events: []v1alpha1.GitEvent{event("e", 5), event("d", 3), event("c", 3), event("b", 9), event("a", 1)},
	}, "s1", nil)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, r := range all {
		got += r.Event.Name
	}
	if got != "acdeb" {
		t.Errorf("the records are %q, want acdeb", got)
	}
}

// List returns all records or an error, so that no decision is made from a part of them.
func TestListIsComplete(t *testing.T) {
	t.Parallel()
	all, err := List(t.Context(), pages{events: []v1alpha1.GitEvent{event("a", 1), event("b", 2)}, endless: true}, "s1",
		nil)
	if f := fault.Of(err); f == nil || f.Class != fault.Ignored || f.Reason != ReasonTooMany || all != nil {
		t.Errorf("a list without an end is %d records and %v, want none and an Ignored fault", len(all), err)
	}
}

// Memory for more than a page is reserved before that is read. Events that do not matter need none.
func TestListReservesMemory(t *testing.T) {
	t.Parallel()
	var events []v1alpha1.GitEvent
	for i := range 250 {
		events = append(events, event(fmt.Sprint("push-", i), int64(i)), event(fmt.Sprint("comment-", i), int64(i)))
		e := &events[len(events)-1]
		e.Spec.Comment = &v1alpha1.Comment{ID: 1}
		e.Status.Phase, e.Status.Disposition = v1alpha1.PhaseSettled, v1alpha1.DispositionIgnored
	}
	var held []int
	hold := func(bytes int) error {
		held = append(held, bytes)
		return nil
	}
	all, err := List(t.Context(), pages{events: events}, "s1", hold)
	if err != nil || len(all) != 250 || fmt.Sprint(held) != fmt.Sprint([]int{200 * 2 << 10, 300 * 2 << 10}) {
		t.Errorf("%d records, %v, held %v", len(all), err, held)
	}
	for i := range events { // of a repository with many pipelines
		events[i].Status.Runs = make([]v1alpha1.Run, 50)
	}
	if all, err = List(t.Context(), pages{events: events}, "s1", hold); err != nil || held[len(held)-1] < len(all)*50<<10 {
		t.Errorf("%d records, %v, held %v", len(all), err, held)
	}
	busy := fault.Throttledf(fault.ReasonBusy, time.Minute, "others have it")
	all, err = List(t.Context(), pages{events: events}, "s1", func(int) error { return busy })
	if !errors.Is(err, busy) || all != nil {
		t.Errorf("without memory: %d records, %v", len(all), err)
	}
}

// Settled comments that have started and approved nothing do not matter for decisions.
func TestMatters(t *testing.T) {
	t.Parallel()
	comment := func(d v1alpha1.Disposition, change func(*v1alpha1.GitEvent)) *v1alpha1.GitEvent {
		e := event("c", 1)
		e.Spec.Comment, e.Status.Disposition, e.Status.Plan = &v1alpha1.Comment{ID: 1}, d, &v1alpha1.Plan{}
		change(&e)
		return &e
	}
	same, pushed := func(*v1alpha1.GitEvent) {}, func(e *v1alpha1.GitEvent) { e.Spec.Comment = nil }
	answered := func(e *v1alpha1.GitEvent) { e.Status.Reply = &v1alpha1.Reply{} }
	ran := func(e *v1alpha1.GitEvent) { e.Status.Runs = []v1alpha1.Run{{}} }
	approves := func(e *v1alpha1.GitEvent) { e.Status.Plan.Approval = &v1alpha1.Approval{} }
	for name, test := range map[string]struct {
		event *v1alpha1.GitEvent
		want  bool
	}{
		"a push that nobody has approved": {comment(v1alpha1.DispositionPending, pushed), true},
		"a push that started nothing":     {comment(v1alpha1.DispositionIgnored, pushed), true},
		"a comment that started nothing":  {comment(v1alpha1.DispositionIgnored, same), false},
		"a command that was answered":     {comment(v1alpha1.DispositionIgnored, answered), false},
		"a command that cancels":          {comment(v1alpha1.DispositionCancels, same), false},
		"a command given up":              {comment(v1alpha1.DispositionRefused, same), false},
		"a command that starts":           {comment(v1alpha1.DispositionRuns, same), true},
		"a command with runs":             {comment(v1alpha1.DispositionRefused, ran), true},
		"an approval":                     {comment(v1alpha1.DispositionIgnored, approves), true},
	} {
		if got := Matters(test.event); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// The list ends when visit returns false. EachOpen visits open events only.
func TestEach(t *testing.T) {
	t.Parallel()
	events := []v1alpha1.GitEvent{event("a", 1), event("b", 2), event("c", 3), event("d", 4), event("e", 5)}
	events[1].Status.Phase = v1alpha1.PhaseSettled
	for name, test := range map[string]struct {
		each func(context.Context, Lister, string, func(*v1alpha1.GitEvent) bool) error
		want string
	}{"all": {Each, "abc"}, "open": {EachOpen, "ac"}} {
		got := ""
		err := test.each(t.Context(), pages{events: events}, "s1", func(e *v1alpha1.GitEvent) bool {
			got += e.Name
			return e.Name != "c"
		})
		if got != test.want || err != nil {
			t.Errorf("%s: visited %q, %v", name, got, err)
		}
	}
}

func TestSHAIsThatOfThePlan(t *testing.T) {
	t.Parallel()
	r := Record{&v1alpha1.GitEvent{Spec: v1alpha1.GitEventSpec{SHA: "a"}}}
	if r.SHA() != "a" {
		t.Errorf("without a plan the commit is %q, want the delivery's", r.SHA())
	}
	r.Event.Status.Plan = &v1alpha1.Plan{HeadSHA: "b"}
	if r.SHA() != "b" {
		t.Errorf("with a plan the commit is %q, want the plan's", r.SHA())
	}
}

// Events are in the order of the API server's clock, because each receiver has its own.
func TestListIsInCreationOrder(t *testing.T) {
	t.Parallel()
	created := func(name string, received, created int64) v1alpha1.GitEvent {
		e := event(name, received)
		e.CreationTimestamp = metav1.NewTime(time.Unix(created, 0))
		return e
	}
	all, err := List(t.Context(), pages{
		events: []v1alpha1.GitEvent{created("ahead", 5000, 1), created("behind", 1, 3), created("right", 2, 2)},
	}, "s1", nil)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, r := range all {
		got += " " + r.Event.Name
	}
	if got != " ahead right behind" {
		t.Errorf("the records are%s", got)
	}
}
