// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// recordedAt is an event of the commit that was recorded so many seconds after the start.
func recordedAt(seconds int, change func(*v1alpha1.GitEvent)) *v1alpha1.GitEvent {
	e := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pull-", seconds)}}
	e.Spec.SHA, e.Spec.ReceivedAt = commit, *at(seconds)
	e.Status.Plan, e.Status.Disposition = &v1alpha1.Plan{HeadSHA: commit}, v1alpha1.DispositionRuns
	change(e)
	return e
}

func decidedOn(decisions ...string) func(*v1alpha1.GitEvent) {
	return func(e *v1alpha1.GitEvent) {
		e.Status.Disposition = v1alpha1.DispositionIgnored
		for i := 0; i < len(decisions); i += 2 {
			e.Status.Plan.Decisions = append(e.Status.Plan.Decisions,
				v1alpha1.Decision{Pipeline: decisions[i], Reason: decisions[i+1]})
		}
	}
}

func ranWith(result *v1alpha1.Result) func(*v1alpha1.GitEvent) {
	return func(e *v1alpha1.GitEvent) {
		e.Status.Runs = []v1alpha1.Run{{Pipeline: "build", Name: "build-1", UID: "u", Result: result}}
	}
}

func waitsFor(reason, message string) func(*v1alpha1.GitEvent) {
	return func(e *v1alpha1.GitEvent) {
		e.Status.Runs = []v1alpha1.Run{{Pipeline: "build", Name: "build-1"}}
		e.Status.Waits = []v1alpha1.Wait{{Step: v1alpha1.StepCreate + "build-1", Reason: reason, Message: message}}
	}
}

func wholeEvent(d v1alpha1.Disposition, message string) func(*v1alpha1.GitEvent) {
	return func(e *v1alpha1.GitEvent) { e.Status.Disposition, e.Status.Plan.Message = d, message }
}

// One sentence says what became of each pipeline, whatever the order in which its events are read.
func TestWhy(t *testing.T) {
	t.Parallel()
	failed := &v1alpha1.Result{Outcome: v1alpha1.OutcomeFailed, Brief: "step test exited with code 1", Message: "1 failed"}
	unplanned := func(e *v1alpha1.GitEvent) { e.Status = v1alpha1.GitEventStatus{} }
	for name, c := range map[string]struct {
		events []*v1alpha1.GitEvent
		names  []string
		want   string
	}{
		"succeeded": {[]*v1alpha1.GitEvent{recordedAt(1, ranWith(&v1alpha1.Result{Outcome: v1alpha1.OutcomeSucceeded}))},
			nil, "build started and succeeded."},
		"failed, the check's title says it": {[]*v1alpha1.GitEvent{recordedAt(1, ranWith(&v1alpha1.Result{
			Outcome: v1alpha1.OutcomeFailed, Verdict: v1alpha1.VerdictAuthor, Cause: "step test of task unit exited with code 1",
			Message: "Tasks Completed: 1 (Failed: 1, Cancelled 0), Skipped: 0",
		}))}, nil, "build started and failed: step test of task unit exited with code 1"},
		"failed": {[]*v1alpha1.GitEvent{recordedAt(1, ranWith(failed))}, nil,
			"build started and failed: step test exited with code 1"},
		"deleted": {[]*v1alpha1.GitEvent{recordedAt(1, ranWith(&v1alpha1.Result{Outcome: v1alpha1.OutcomeDeleted}))}, nil,
			"build started, and its PipelineRun was deleted before it finished."},
		"cancelled": {[]*v1alpha1.GitEvent{recordedAt(1, ranWith(
			&v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled, Message: "ann requested it"}))}, nil,
			"build started and was cancelled: ann requested it"},
		"running": {[]*v1alpha1.GitEvent{recordedAt(1, ranWith(nil))}, nil, "build started and is still running."},
		"a slot": {[]*v1alpha1.GitEvent{recordedAt(1, waitsFor(fault.ReasonConcurrencyLimit, "place 3 in the queue"))}, nil,
			"build has not started yet, because it waits for a slot: place 3 in the queue"},
		"a quota": {[]*v1alpha1.GitEvent{recordedAt(1, waitsFor(fault.ReasonQuota, "the quota is exhausted"))}, nil,
			"build has not started yet: the quota is exhausted"},
		"refused": {[]*v1alpha1.GitEvent{recordedAt(1, func(e *v1alpha1.GitEvent) {
			e.Status.Runs = []v1alpha1.Run{{Pipeline: "build", Refused: &v1alpha1.Refusal{Message: "line 3: no"}}}
		})}, nil, "build did not start, because its definition was refused: line 3: no"},
		"cancelled before it started": {[]*v1alpha1.GitEvent{recordedAt(1, func(e *v1alpha1.GitEvent) {
			e.Status.Runs = []v1alpha1.Run{{Pipeline: "build", Result: &v1alpha1.Result{Message: "ann closed it"}}}
		})}, nil, "build did not start: ann closed it"},
		"cancelled between two attempts": {[]*v1alpha1.GitEvent{recordedAt(1, func(e *v1alpha1.GitEvent) {
			ranWith(nil)(e)
			e.Status.Runs[0].Retry("build-1-2", &v1alpha1.Result{})
			e.Status.Runs[0].Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled, Message: "ann closed it"}
		})}, nil, "build started and was cancelled: ann closed it"},
		"between two attempts": {[]*v1alpha1.GitEvent{recordedAt(1, func(e *v1alpha1.GitEvent) {
			waitsFor("AttemptFailed", "attempt 1 failed because of the cluster")(e)
			e.Status.Waits[0].Step += "-2"
			e.Status.Runs[0].Retry("build-1-2", &v1alpha1.Result{})
		})}, nil, "build was ended by a cluster problem, and its next attempt waits: " +
			"attempt 1 failed because of the cluster"},
		"about to start": {[]*v1alpha1.GitEvent{recordedAt(1, func(e *v1alpha1.GitEvent) {
			e.Status.Runs = []v1alpha1.Run{{Pipeline: "build"}}
		})}, nil, "build is about to start."},
		"not selected": {[]*v1alpha1.GitEvent{recordedAt(1, decidedOn("docs", "no file matches docs/**"))}, nil,
			"docs did not start: no file matches docs/**"},
		"open": {[]*v1alpha1.GitEvent{recordedAt(1, func(e *v1alpha1.GitEvent) {
			e.Status.Plan.Decisions = []v1alpha1.Decision{{Pipeline: "docs", Open: true, Reason: "the task is read"}}
		})}, nil, "docs is not decided yet: the task is read"},
		"a run outweighs a later label": {[]*v1alpha1.GitEvent{
			recordedAt(2, decidedOn("build", "only a label was added")), recordedAt(1, ranWith(nil))}, nil,
			"build started and is still running."},
		"the last run counts": {[]*v1alpha1.GitEvent{
			recordedAt(3, ranWith(nil)), recordedAt(1, ranWith(failed))}, nil, "build started and is still running."},
		"a command that names another": {[]*v1alpha1.GitEvent{recordedAt(1, decidedOn("docs", "no file matches")),
			recordedAt(2, func(e *v1alpha1.GitEvent) {
				ranWith(nil)(e)
				e.Spec.Comment = &v1alpha1.Comment{}
				e.Status.Plan.Decisions = []v1alpha1.Decision{{Pipeline: "docs", Reason: v1alpha1.NotNamed}}
			})}, nil, "build started and is still running.\ndocs did not start: no file matches"},
		"a question about one": {[]*v1alpha1.GitEvent{recordedAt(1, decidedOn("build-", "x", "docs", "y"))},
			[]string{"build"}, "build- did not start: x"},
		"another commit": {[]*v1alpha1.GitEvent{recordedAt(1, func(e *v1alpha1.GitEvent) {
			e.Status.Plan.HeadSHA = "another"
		})}, nil, ""},
		"a comment that started nothing": {[]*v1alpha1.GitEvent{recordedAt(1, func(e *v1alpha1.GitEvent) {
			decidedOn("build", "x")(e)
			e.Spec.Comment = &v1alpha1.Comment{}
		})}, nil, ""},
		"pending": {[]*v1alpha1.GitEvent{recordedAt(1, wholeEvent(v1alpha1.DispositionPending, "ask ann"))}, nil,
			" Nothing has started, because the commit waits for approval: ask ann"},
		"approved since": {[]*v1alpha1.GitEvent{recordedAt(1, wholeEvent(v1alpha1.DispositionPending, "ask ann")),
			recordedAt(2, ranWith(nil))}, nil, "build started and is still running."},
		"skipped": {[]*v1alpha1.GitEvent{recordedAt(1, wholeEvent(v1alpha1.DispositionSkipped, "skip CI"))}, nil,
			" Nothing has started: skip CI"},
		"superseded": {[]*v1alpha1.GitEvent{recordedAt(1, wholeEvent(v1alpha1.DispositionSuperseded, "newer"))}, nil,
			" Nothing has started: newer"},
		"given up": {[]*v1alpha1.GitEvent{recordedAt(1, wholeEvent(v1alpha1.DispositionRefused, "gone"))}, nil,
			" Nothing has started: gone"},
		"unplanned": {[]*v1alpha1.GitEvent{recordedAt(1, unplanned)}, nil,
			" Which pipelines start is not decided yet. Ask again in a minute."},
		"planning waits": {[]*v1alpha1.GitEvent{recordedAt(1, func(e *v1alpha1.GitEvent) {
			unplanned(e)
			e.Status.Waits = []v1alpha1.Wait{{Step: v1alpha1.StepPlan, Message: "GitHub answers 502"}}
		})}, nil, " Which pipelines start is not decided yet: GitHub answers 502"},
	} {
		for _, order := range []string{"as read", "reversed"} {
			w := Why{Commit: commit}
			for _, event := range c.events {
				w.Add(event)
			}
			var got []string
			for _, d := range w.Decisions(c.names) {
				got = append(got, d.Pipeline+" "+d.Reason)
			}
			if strings.Join(got, "\n") != c.want {
				t.Errorf("%s, %s: %q, want %q", name, order, got, c.want)
			}
			slices.Reverse(c.events)
		}
	}
}

// However many pipelines there are, the answer is short.
func TestWhyIsBounded(t *testing.T) {
	t.Parallel()
	w := Why{Commit: commit}
	for i := range 300 {
		w.Add(recordedAt(1, decidedOn(fmt.Sprint("p", i), strings.Repeat("x", 10_000))))
	}
	all := w.Decisions(nil)
	if len(all) != maxBecause+1 || all[maxBecause].Reason != "And 280 more." {
		t.Errorf("%d lines, the last one is %q", len(all), all[len(all)-1].Reason)
	}
}

// A /why is answered with a list. Of several, only the newest is answered.
func TestReplyExplains(t *testing.T) {
	t.Parallel()
	why := func(second int, decisions ...v1alpha1.Decision) *v1alpha1.GitEvent {
		return commanded(second, "/why", func(s *v1alpha1.GitEventStatus) {
			s.Plan.Reason, s.Plan.Message, s.Plan.Decisions = v1alpha1.Explained, "No event is on record.", decisions
		})
	}
	lines := []v1alpha1.Decision{
		{Reason: "Nothing has started: ask @all to look at #1."},
		{Pipeline: "build", Reason: "started and failed: step `test` exited with code 1"},
		{Pipeline: "docs", Reason: "did not start: on-path-change is [docs/**], and <b>no</b> file matches"},
	}
	golden(t, "reply-why", Replies([]*v1alpha1.GitEvent{why(1), why(3, lines...), why(2, lines...),
		commanded(2, "/test build", started("build"))}))
	golden(t, "reply-why-before",
		Replies([]*v1alpha1.GitEvent{why(1, lines...), commanded(2, "/test build", started("build"))}))
	golden(t, "reply-why-nothing", Replies([]*v1alpha1.GitEvent{why(1)}))
	old, newest := why(1), why(2)
	all := NewestCommands([]*v1alpha1.GitEvent{old, newest})
	if slices.Contains(all, old) || !slices.Contains(all, newest) {
		t.Error("an older /why is answered, or the newest is not")
	}
}
