// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// annotated are pages that store which events were annotated, and may refuse that.
type annotated struct {
	pages
	names  []string
	refuse error
}

//nolint:revive // client-go decides what it takes
func (a *annotated) Patch(_ context.Context, name string, _ types.PatchType, _ []byte,
	_ metav1.PatchOptions, _ ...string) (*v1alpha1.GitEvent, error) {
	a.names = append(a.names, name)
	return nil, a.refuse
}

// An event waits until older ones are planned, for a short time and not for those that wait for
// something. It makes the events read again that may be planned at the same time.
func TestFirst(t *testing.T) {
	t.Parallel()
	comment := func(e *v1alpha1.GitEvent) { e.Spec.Comment = &v1alpha1.Comment{ID: 1} }
	waits := func(e *v1alpha1.GitEvent) { e.Status.Waits = []v1alpha1.Wait{{Step: v1alpha1.StepPlan}} }
	for name, c := range map[string]struct {
		name   string
		second int64
		change []func(*v1alpha1.GitEvent)
		after  time.Duration
		waits  time.Duration
		told   bool
	}{
		"an older one":                    {"a", 5, nil, 0, time.Second, false},
		"an older one of the same second": {"a", 10, nil, 0, time.Second, false},
		"an older comment, after 5 s": {
			"a", 5, []func(*v1alpha1.GitEvent){comment}, 5 * time.Second, 5 * time.Second, false,
		},
		"an older comment, after half a min": {
			"a", 5, []func(*v1alpha1.GitEvent){comment}, 30 * time.Second, 10 * time.Second, false,
		},
		"for too long":      {"a", 5, []func(*v1alpha1.GitEvent){comment}, Patience, 0, true},
		"one that waits":    {"a", 5, []func(*v1alpha1.GitEvent){comment, waits}, 0, 0, true},
		"a push that waits": {"a", 5, []func(*v1alpha1.GitEvent){waits}, 0, 0, false},
		"a younger comment": {"z", 10, []func(*v1alpha1.GitEvent){comment}, 0, 0, true},
		"a younger press": {
			"a", 11, []func(*v1alpha1.GitEvent){func(e *v1alpha1.GitEvent) { e.Spec.Rerun = &v1alpha1.Rerun{} }}, 0, 0, true,
		},
		"a younger push": {"a", 11, nil, 0, 0, false},
		"itself":         {"me", 5, []func(*v1alpha1.GitEvent){comment}, 0, 0, false},
		"what is planned": {"a", 5,
			[]func(*v1alpha1.GitEvent){comment, func(e *v1alpha1.GitEvent) { e.Status.Plan = &v1alpha1.Plan{} }}, 0, 0, false},
		"what is planned in part": {"a", 5, []func(*v1alpha1.GitEvent){comment, waits, func(e *v1alpha1.GitEvent) {
			e.Status.Plan = &v1alpha1.Plan{Decisions: []v1alpha1.Decision{{Open: true}}}
		}}, 0, 0, true},
		"what is settled": {"a", 5, []func(*v1alpha1.GitEvent){
			comment, func(e *v1alpha1.GitEvent) { e.Status.Phase = v1alpha1.PhaseSettled },
		}, 0, 0, false},
		"a close": {"a", 5, []func(*v1alpha1.GitEvent){func(e *v1alpha1.GitEvent) {
			e.Spec.PullRequest, e.Spec.Action = &v1alpha1.PullRequest{}, "closed"
		}}, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other, me := event(c.name, c.second), event("me", 10)
			for _, change := range c.change {
				change(&other)
			}
			all := &annotated{pages: pages{events: []v1alpha1.GitEvent{me, other}}}
			err := First(t.Context(), all, &me, "s1", me.Spec.ReceivedAt.Add(c.after))
			wait := time.Duration(0)
			if f := fault.Of(err); f != nil {
				wait = f.RetryAfter
			}
			if wait != c.waits || slices.Contains(all.names, c.name) != c.told {
				t.Errorf("%v, annotated %v; want a wait of %s", err, all.names, c.waits)
			}
		})
	}
}

// Nothing is decided while the other events cannot be listed or annotated. A deleted one is
// skipped.
func TestFirstIsRetriedAfterARefusal(t *testing.T) {
	t.Parallel()
	me, other := event("me", 10), event("z", 10)
	other.Spec.Comment = &v1alpha1.Comment{ID: 1}
	for name, c := range map[string]struct {
		subject string
		refuse  error
		waits   bool
	}{
		"no list": {"s2", nil, true}, "denied": {"s1", errors.New("denied"), true}, "told": {"s1", nil, false},
		"gone": {"s1", apierrors.NewNotFound(schema.GroupResource{Resource: "gitevents"}, "z"), false},
	} {
		err := First(t.Context(), &annotated{pages: pages{events: []v1alpha1.GitEvent{me, other}}, refuse: c.refuse}, &me,
			c.subject, time.Unix(10, 0))
		if f := fault.Of(err); (f != nil) != c.waits || f != nil && f.Class != fault.Transient {
			t.Errorf("%s: %v", name, err)
		}
	}
}
