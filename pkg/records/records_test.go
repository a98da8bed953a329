// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// pages answers with two events a page.
type pages struct {
	events  []v1alpha1.GitEvent
	endless bool
}

func (p pages) List(_ context.Context, o metav1.ListOptions) (*v1alpha1.GitEventList, error) {
	if want := "plumbline.dev/subject in (s1)"; o.LabelSelector != want {
		return nil, fmt.Errorf("selector %q, want %q", o.LabelSelector, want)
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
	all, err := List(t.Context(), pages{events: []v1alpha1.GitEvent{event("e", 5), event("d", 3), event("c", 3), event("b", 9), event("a", 1)}}, "s1")
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

func TestListNeverCuts(t *testing.T) {
	t.Parallel()
	all, err := List(t.Context(), pages{events: []v1alpha1.GitEvent{event("a", 1), event("b", 2)}, endless: true}, "s1")
	if !fault.Is(err, fault.Operator) || all != nil {
		t.Errorf("a list without an end is %d records and %v, want none and an Operator fault", len(all), err)
	}
}

func TestSHAIsThePlansOnceThereIsOne(t *testing.T) {
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

// Each receiver has a clock of its own: the API server's orders what they have recorded.
func TestListIsInTheOrderOfTheAPIServer(t *testing.T) {
	t.Parallel()
	created := func(name string, received, created int64) v1alpha1.GitEvent {
		e := event(name, received)
		e.CreationTimestamp = metav1.NewTime(time.Unix(created, 0))
		return e
	}
	all, err := List(t.Context(), pages{events: []v1alpha1.GitEvent{created("ahead", 5000, 1), created("behind", 1, 3), created("right", 2, 2)}}, "s1")
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
