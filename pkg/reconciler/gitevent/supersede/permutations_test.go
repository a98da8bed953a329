// SPDX-License-Identifier: Apache-2.0

package supersede

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const pushes = 10

// model is a Git service, an API server and controllers whose caches and replicas lag. The events
// are reconciled one step at a time. Each commit has one of two pipelines, or both. In some models
// runs finish by themselves, and their events settle.
func (m *model) plan(e *v1alpha1.GitEvent) {
	if e.Spec.Comment != nil && m.r.IntN(3) > 0 {
		return
	}
	sha, at := e.Spec.SHA, metav1.NewTime(m.now)
	if e.Spec.Comment != nil {
		sha = m.tip()
	}
	e.Status.Plan = &v1alpha1.Plan{HeadSHA: sha, At: &at}
	for _, pipeline := range m.has[sha] {
		e.Status.Runs = append(e.Status.Runs,
			v1alpha1.Run{Pipeline: pipeline, Name: pipeline + "-of-" + e.Name, CancelInProgress: true})
	}
}

// turn is one reconcile of an event, like in pkg/reconciler/gitevent.
func (m *model) turn(e *v1alpha1.GitEvent) {
	view := m.cached
	if m.r.IntN(3) > 0 {
		view = m.snapshot()
	}
	m.cached = m.snapshot()
	switch {
	case e.Settled():
		return
	case e.Status.Plan == nil:
		m.plan(e)
		return
	}
	l := seriesOf(e, view)
	v, _ := l.findNewer(l.rivals(), m.git(e), m.now)
	for _, n := range v.notes {
		m.annotate(e, n.from, cancellation(&e.Spec, append(noted(e, n.from), n.names...), n.newest))
	}
	open := false
	for i := range e.Status.Runs {
		run := &e.Status.Runs[i]
		m.advance(e, run, slices.Contains(v.held, run.Pipeline))
		open = open || run.Result == nil
	}
	m.tell(e, view)
	if !open {
		e.Status.Phase = v1alpha1.PhaseSettled
	}
}

// advance creates a run if it may be created, and finishes it.
func (m *model) advance(e *v1alpha1.GitEvent, run *v1alpha1.Run, held bool) {
	step := v1alpha1.StepCreate + run.Name
	cancelled := e.Cancelled(run.Pipeline) != nil
	waits := slices.DeleteFunc(e.Status.Waits, func(w v1alpha1.Wait) bool { return w.Step == step })
	switch {
	// Tekton takes its time
	case run.Creatable() && cancelled, run.UID != "" && run.Result == nil && cancelled && m.r.IntN(2) == 0:
		run.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled}
	case run.UID != "" && run.Result == nil && m.ends && m.r.IntN(30) == 0:
		run.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeSucceeded}
	case run.Creatable() && !held && m.slot(run.Pipeline):
		run.UID = "uid"
	case run.Creatable() && !held:
		waits = append(waits, v1alpha1.Wait{Step: step, Reason: fault.ReasonConcurrencyLimit})
	}
	e.Status.Waits = waits
}

func (m *model) tell(e *v1alpha1.GitEvent, view []*v1alpha1.GitEvent) {
	names := replaces(e)
	if len(names) == 0 {
		return
	}
	olders, _ := seriesOf(e, view).olderEvents(names, m.git(e), m.now)
	for _, older := range olders {
		for _, other := range m.events {
			if other.Name == older.Name && !other.Settled() {
				m.annotate(other, e.Name, cancellation(&e.Spec, append(noted(older, e.Name), names...), shaOf(e)))
			}
		}
	}
}

// slot reports whether one more run of a pipeline may start: the first waiting run gets the slot.
func (m *model) slot(pipeline string) bool {
	return !m.limit || !slices.ContainsFunc(m.events, func(e *v1alpha1.GitEvent) bool {
		run := runOf(e, pipeline)
		return run != nil && run.UID != "" && run.Result == nil
	})
}

func runOf(e *v1alpha1.GitEvent, pipeline string) *v1alpha1.Run {
	for i := range e.Status.Runs {
		if run := &e.Status.Runs[i]; run.Pipeline == pipeline {
			return run
		}
	}
	return nil
}

// play delivers the pushes in any order, some of them twice and some late by minutes, and
// reconciles any recorded events in between.
func (m *model) play() {
	order := m.r.Perm(pushes)
	for _, push := range order {
		m.record(push)
		m.record(order[m.r.IntN(len(order))])
		if m.r.IntN(4) == 0 {
			m.comment()
		}
		if m.r.IntN(12) == 0 {
			m.pass(300)
		}
		for range m.r.IntN(6) {
			m.turn(m.events[m.r.IntN(len(m.events))])
			m.pass(2)
		}
	}
	for range 60 {
		for _, e := range m.events {
			m.turn(e)
		}
		m.pass(6)
	}
}

// newest returns the newest event with a run of the pipeline: that of the commit that was pushed
// last.
func (m *model) newest(pipeline string) *v1alpha1.GitEvent {
	var found *v1alpha1.GitEvent
	last := func(e *v1alpha1.GitEvent) int {
		for i := pushes - 1; ; i-- {
			if m.commit[i] == shaOf(e) {
				return i
			}
		}
	}
	for _, e := range m.events {
		if runOf(e, pipeline) != nil &&
			(found == nil || last(e) > last(found) || last(e) == last(found) && later(e, found) > 0) {
			found = e
		}
	}
	return found
}

// open reports whether both of two events may go on: the newest commit does not have the pipeline,
// and because of a comment it is not known which of their commits is newer.
func (m *model) open(pipeline string, a, b *v1alpha1.GitEvent) bool {
	return !slices.Contains(m.has[m.commit[pushes-1]], pipeline) &&
		slices.ContainsFunc(m.events, func(e *v1alpha1.GitEvent) bool {
			return e.Spec.Comment != nil && (shaOf(e) == shaOf(a) || shaOf(e) == shaOf(b))
		})
}

// waits reports whether an event has no slot because another one's run goes on that may.
func (m *model) waits(pipeline string, e *v1alpha1.GitEvent) bool {
	return m.limit && slices.ContainsFunc(m.events, func(other *v1alpha1.GitEvent) bool {
		run := runOf(other, pipeline)
		return run != nil && run.UID != "" && run.Result == nil && m.open(pipeline, other, e)
	})
}

// Ten pushes to a branch, or to a pull request with comments, are delivered in any order. Of each
// pipeline only the newest run is left, and nothing ever stopped it. Once it is finished by itself,
// a late event may run, too.
func TestOnlyTheNewestOfTenPushesIsLeft(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		m := newModel(seed)
		m.play()
		for _, pipeline := range []string{"build", "docs"} {
			newest := m.newest(pipeline)
			for _, e := range m.events {
				run := runOf(e, pipeline)
				switch {
				case run == nil:
				case e == newest && (run.UID == "" && !m.waits(pipeline, e) || e.Cancelled(pipeline) != nil):
					t.Errorf("seed %d: the newest, %s of commit %s: %+v, cancelled %+v", seed, e.Name, shaOf(e), run,
						e.Cancelled(pipeline))
				case e != newest && run.Result == nil && runOf(newest, pipeline).Result == nil && !m.open(pipeline, e, newest):
					t.Errorf("seed %d: %s of commit %s goes on: %+v beside %s", seed, e.Name, shaOf(e), run, newest.Name)
				}
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d: %d events, pull request %t, limit %t, runs end %t", seed, len(m.events), m.pull, m.limit, m.ends)
		}
	}
}
