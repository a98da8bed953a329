// SPDX-License-Identifier: Apache-2.0

package supersede

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/store/gitevents"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// push returns an event of a push to main with an existing run that cancels others.
func push(name, before, sha string, received time.Duration) *v1alpha1.GitEvent {
	e := &v1alpha1.GitEvent{}
	e.Name = name
	e.Spec = v1alpha1.GitEventSpec{
		Trigger: v1alpha1.TriggerPush, SHA: sha, Before: before, BaseRef: "refs/heads/main",
		ReceivedAt: metav1.NewTime(start.Add(received)),
	}
	e.Spec.Repository.URL = "https://git.example/acme/app"
	e.Status.Plan = &v1alpha1.Plan{HeadSHA: sha}
	e.Status.Runs = []v1alpha1.Run{{Pipeline: "build", Name: name, UID: "uid", CancelInProgress: true}}
	return e
}

// trimmed returns events as the cache has them.
func trimmed(events ...*v1alpha1.GitEvent) (kept []*v1alpha1.GitEvent) {
	for _, e := range events {
		kept = append(kept, gitevents.Trim(e))
	}
	return kept
}

// cancelled annotates an event with these pipelines.
func cancelled(e *v1alpha1.GitEvent, from string, names ...string) {
	key, value, _ := cancellation(&e.Spec, names, "x").CancelsAs(from)
	metav1.SetMetaDataAnnotation(&e.ObjectMeta, key, value)
}

// planned sets the time of the plan after the start.
func planned(after time.Duration) func(*v1alpha1.GitEvent) {
	return func(e *v1alpha1.GitEvent) {
		at := metav1.NewTime(start.Add(after))
		e.Status.Plan.At = &at
	}
}

// happened sets the time of the event after the start, by the Git service's clock.
func happened(after time.Duration) func(*v1alpha1.GitEvent) {
	return func(e *v1alpha1.GitEvent) {
		at := metav1.NewTime(start.Add(after))
		e.Spec.HappenedAt = &at
	}
}

// adds gives an event an existing run of another pipeline.
func adds(pipeline string, cancels bool) func(*v1alpha1.GitEvent) {
	return func(e *v1alpha1.GitEvent) {
		e.Status.Runs = append(e.Status.Runs,
			v1alpha1.Run{Pipeline: pipeline, Name: e.Name + pipeline, UID: "uid", CancelInProgress: cancels})
	}
}

func with(e *v1alpha1.GitEvent, change func(*v1alpha1.GitEvent)) *v1alpha1.GitEvent {
	change(e)
	return e
}

func pulled(number int64) func(*v1alpha1.GitEvent) {
	return func(e *v1alpha1.GitEvent) {
		e.Spec.Trigger, e.Spec.PullRequest = v1alpha1.TriggerPullRequest, &v1alpha1.PullRequest{Number: number}
	}
}

// The order of an event of commit b, which has replaced a, and another one.
func TestOrderOfTwoEvents(t *testing.T) {
	t.Parallel()
	const a, b, c = "a", "b", "c"
	tests := map[string]struct {
		other *v1alpha1.GitEvent
		head  string
		after time.Duration // since the event was received
		want  string        // of the event: "ends" the other, "yields" to a commit, "waits", or nothing
		calls int
	}{
		"the one before is ended":                          {push("o", "", a, 0), b, 0, "ends o", 1},
		"the one after takes its place":                    {push("o", b, c, 0), c, 0, "yields c", 1},
		"a replica that has not heard of the push":         {push("o", "", a, 0), a, 0, "waits", 1},
		"a replica that has not heard of the next":         {push("o", b, c, 0), b, 0, "waits", 1},
		"a replica does not lag for a minute":              {push("o", b, c, 0), b, time.Minute, "ends o", 1},
		"both are replaced by what is not recorded":        {push("o", "", a, 0), c, time.Minute, "ends o", 1},
		"both are replaced, and this one before the other": {push("o", b, "d", 0), c, time.Minute, "yields d", 1},
		"both are replaced, and nobody confirms":           {push("o", "", a, 0), c, time.Second, "waits", 1},
		"pushes in between are not recorded":               {push("o", "", "x", 0), b, time.Second, "waits", 1},
		"that for long":                                    {push("o", "", "x", 0), b, time.Minute, "ends o", 1},
		"of one commit the later one":                      {push("o", a, b, time.Second), c, 0, "yields b", 0},
		"of one commit the earlier one":                    {push("o", a, b, -time.Second), c, 0, "ends o", 0},
		"a branch that is gone: by what was pushed":        {push("o", "", a, 0), "", 0, "ends o", 1},
		"a branch that is gone, the other way":             {push("o", b, c, 0), "", 0, "yields c", 1},
		"a branch that is gone, and nobody knows":          {push("o", "", "x", 0), "", time.Minute, "", 1},
		"a push back to the commit before":                 {push("o", b, a, 0), a, time.Minute, "yields a", 1},
		"a push back, or a replica that lags":              {push("o", b, a, 0), a, 0, "waits", 1},
		"another branch": {
			with(push("o", "", a, 0), func(e *v1alpha1.GitEvent) { e.Spec.BaseRef = "refs/heads/x" }), b, 0, "", 0,
		},
		"a tag of the branch's name": {
			with(push("o", "", a, 0), func(e *v1alpha1.GitEvent) { e.Spec.BaseRef = "refs/tags/main" }), b, 0, "", 0,
		},
		"a pull request": {with(push("o", "", a, 0), pulled(1)), b, 0, "", 0},
		"another Repository": {with(push("o", "", a, 0),
			func(e *v1alpha1.GitEvent) { e.Spec.Repository.URL = "https://git.example/acme/x" }), b, 0, "", 0},
		"another pipeline": {
			with(push("o", "", a, 0), func(e *v1alpha1.GitEvent) { e.Status.Runs[0].Pipeline = "lint" }), b, 0, "", 0,
		},
		"it is over, and is not settled": {
			with(push("o", "", a, 0), func(e *v1alpha1.GitEvent) { e.Status.Runs[0].Result = &v1alpha1.Result{} }), b, 0, "", 1,
		},
		"it does not cancel, and is older": {with(push("o", "", a, 0),
			func(e *v1alpha1.GitEvent) { e.Status.Runs[0].CancelInProgress = false }), b, 0, "ends o", 1},
		"it is not planned": {
			with(push("o", "", a, 0), func(e *v1alpha1.GitEvent) { e.Status = v1alpha1.GitEventStatus{} }), b, 0, "ends o", 1,
		},
		"it knows": {
			with(push("o", "", a, 0), func(e *v1alpha1.GitEvent) { cancelled(e, "self", "build") }), b, 0, "", 0,
		},
		"a comment that waited for its plan is as new as that": {
			with(push("o", "", "x", -2*time.Minute), planned(5*time.Second)), b, 10 * time.Second, "waits", 1,
		},
		"and no replica lags behind the plan for long": {
			with(push("o", "", "x", -2*time.Minute), planned(5*time.Second)), b, 40 * time.Second, "ends o", 1,
		},
		"a newer one was cancelled itself": {
			with(push("o", b, c, 0), func(e *v1alpha1.GitEvent) { cancelled(e, "x", "build") }), c, time.Minute, "", 0,
		},
		"a newer one was refused": {with(push("o", b, c, 0), func(e *v1alpha1.GitEvent) {
			e.Status.Runs[0].UID, e.Status.Runs[0].Refused = "", &v1alpha1.Refusal{}
		}), c, time.Minute, "", 0},
		"a newer one is not created yet": {
			with(push("o", b, c, 0), func(e *v1alpha1.GitEvent) { e.Status.Runs[0].UID = "" }), c, 0, "", 1,
		},
		"a newer one waits for the slot that this one has": {with(push("o", b, c, 0), waiting), c, 0, "yields c", 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			self, calls := push("self", a, b, 0), 0
			ask := func() (string, error) { calls = 1; return test.head, nil }
			l, now := seriesOf(self, trimmed(self, test.other)), start.Add(test.after)
			got := ""
			v, undecided := l.findNewer(l.rivals(), asks{tip: ask}, now)
			for _, n := range v.notes {
				got = "yields " + n.newest
			}
			if len(v.notes) == 0 {
				olders, err := l.olderEvents(replaces(self), asks{tip: ask}, now)
				undecided = errors.Join(undecided, err)
				for _, o := range olders {
					got = "ends " + o.Name
				}
			}
			if undecided != nil && got == "" && test.want != "" {
				got = "waits"
			}
			if got != test.want || calls != test.calls {
				t.Errorf("%q after %d calls (%v), want %q after %d", got, calls, undecided, test.want, test.calls)
			}
		})
	}
}

func waiting(e *v1alpha1.GitEvent) {
	e.Status.Runs[0].UID = ""
	e.Status.Waits = []v1alpha1.Wait{
		{Step: v1alpha1.StepCreate + e.Status.Runs[0].Name, Reason: fault.ReasonConcurrencyLimit},
	}
}

// Comments, labels and re-runs belong to the pull request; an unplanned event has no known commit.
// Of the events of one commit one is left, in every process.
func TestOneRunPerCommitIsLeft(t *testing.T) {
	t.Parallel()
	at := func(second int) func(*v1alpha1.GitEvent) {
		return func(e *v1alpha1.GitEvent) {
			h := metav1.NewTime(start.Add(time.Duration(second) * time.Second))
			e.Spec.HappenedAt = &h
		}
	}
	comment := func(name string, id int64) *v1alpha1.GitEvent {
		e := with(with(push(name, "", "", 0), pulled(3)), at(1))
		e.Spec.Comment, e.Status.Plan.HeadSHA = &v1alpha1.Comment{ID: id}, "b"
		return e
	}
	// of this one and of the one before
	for version, label := range strings.Split(with(push("", "", "", 0), pulled(3)).Spec.Subjects(), ",") {
		rerun := push("rerun", "", "b", 0)
		rerun.Spec.Rerun, rerun.Spec.BaseRef, rerun.Labels = &v1alpha1.Rerun{}, "",
			map[string]string{plumbline.SubjectLabel: label}
		all := []*v1alpha1.GitEvent{
			with(with(push("push", "a", "b", 5), pulled(3)), at(0)), with(with(push("label", "", "b", 4), pulled(3)), at(1)),
			comment("first", 1), comment("second", 2), with(rerun, at(-1)),
		}
		for i := range all { // whichever cannot be seen by others
			var left []string
			for _, self := range all {
				l := seriesOf(self, trimmed(all...))
				if v, err := l.findNewer(l.rivals(), asks{}, start); err == nil && len(v.notes) == 0 {
					left = append(left, self.Name)
				}
			}
			if !slices.Equal(left, []string{"second"}) {
				t.Errorf("version %d, from %d: %v are left", version, i, left)
			}
			all = append(all[1:], all[0])
		}
	}
}

// A push back to the first commit is not recorded. A run of that commit that is requested then is
// not older because a lagging replica agrees with the recorded pushes. If the head has no run of
// the pipeline, the Git service's clock decides which of two other events is newer, if the recorded
// pushes lead back, or do not connect the two: events without runs settle at once.
