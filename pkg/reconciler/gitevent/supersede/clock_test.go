// SPDX-License-Identifier: Apache-2.0

package supersede

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestUnrecordedPushIsOrderedByTheClock(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		written, planned, after time.Duration // since the start; the second push was a minute after it
		tip, want               string
	}{
		"a replica lags":                    {5 * time.Minute, 5 * time.Minute, 5*time.Minute + time.Second, "b", ""},
		"none lags":                         {5 * time.Minute, 5 * time.Minute, 6 * time.Minute, "a", "second"},
		"it was written before, and waited": {50 * time.Second, 65 * time.Second, 66 * time.Second, "b", ""},
	} {
		comment := with(with(with(push("comment", "", "", test.written), pulled(3)), happened(test.written)),
			planned(test.planned))
		comment.Spec.Comment, comment.Status.Plan.HeadSHA = &v1alpha1.Comment{ID: 1}, "a"
		second := with(with(push("second", "a", "b", time.Minute), pulled(3)), happened(time.Minute))
		all := trimmed(comment, second)
		ask := asks{tip: func() (string, error) { return test.tip, nil }}
		got := ""
		for _, self := range []*v1alpha1.GitEvent{comment, second} {
			l := seriesOf(self, all)
			if v, _ := l.findNewer(l.rivals(), ask, start.Add(test.after)); len(v.notes) > 0 {
				got += self.Name
			}
			if olders, _ := l.olderEvents([]string{"build"}, ask, start.Add(test.after)); len(olders) > 0 && test.want == "" {
				t.Errorf("%s: %s ends %s", name, self.Name, olders[0].Name)
			}
		}
		if got != test.want {
			t.Errorf("%s: %q yields, want %q", name, got, test.want)
		}
	}
}

func TestClockDecidesWherePushesDoNot(t *testing.T) {
	t.Parallel()
	first, third := with(push("first", "", "a", 0), happened(0)), with(push("third", "b", "c", 0), happened(2*time.Second))
	back := with(push("back", "c", "a", 0), happened(3*time.Second))
	for name, test := range map[string]struct {
		events []*v1alpha1.GitEvent
		left   string
	}{
		"no way from one to the other": {[]*v1alpha1.GitEvent{first, third}, "third"},
		"a circle": {
			[]*v1alpha1.GitEvent{back, third, with(push("between", "a", "b", 0), happened(time.Second))}, "back",
		},
		"no clock": {[]*v1alpha1.GitEvent{push("first", "", "a", 0), third}, "firstthird"},
	} {
		left := ""
		for _, self := range test.events {
			l := seriesOf(self, trimmed(test.events...))
			if v, err := l.findNewer(l.rivals(), asks{tip: func() (string, error) { return "head", nil }},
				start.Add(time.Minute)); err == nil && len(v.notes) == 0 {
				left += self.Name
			}
		}
		if left != test.left {
			t.Errorf("%s: %q left, want %q", name, left, test.left)
		}
	}
}

// Of two events of one commit and second, the one that the API server stored later is newer,
// whatever their receivers' clocks say. An event without a time happened when it was stored.
func TestReceiversClocksDoNotDecide(t *testing.T) {
	t.Parallel()
	created := func(at time.Duration) func(*v1alpha1.GitEvent) {
		return func(e *v1alpha1.GitEvent) { e.CreationTimestamp = metav1.NewTime(start.Add(at)) }
	}
	for name, of := range map[string]func(e *v1alpha1.GitEvent) *v1alpha1.GitEvent{
		"both say when": func(e *v1alpha1.GitEvent) *v1alpha1.GitEvent { return with(e, happened(0)) },
		"neither does":  func(e *v1alpha1.GitEvent) *v1alpha1.GitEvent { return e },
	} {
		first, second := of(with(push("b", "", "a", time.Hour), created(0))),
			of(with(push("a", "", "a", 0), created(time.Second)))
		if later(second, first) <= 0 || later(first, second) >= 0 {
			t.Errorf("%s: what was stored first is newer", name)
		}
	}
	// The Git service is not a day ahead: the receiver is a day behind.
	behind := with(with(push("c", "", "a", -24*time.Hour), happened(time.Minute)), created(time.Minute))
	if before := with(with(push("d", "", "a", 0), happened(0)), created(0)); later(behind, before) <= 0 {
		t.Error("a receiver that is behind makes its events older")
	}
}
