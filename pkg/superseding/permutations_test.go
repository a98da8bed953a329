// SPDX-License-Identifier: Apache-2.0

package superseding

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/openevents"
)

const pushes = 10

// model is a Git service, an API server and controllers whose caches and replicas lag. The events are worked on one step at a time.
type model struct {
	r      *rand.Rand
	now    time.Time
	pull   bool
	limit  bool
	commit []string    // of each push
	at     []time.Time // when it was pushed
	events []*v1alpha1.GitEvent
	// cached is what a process saw a step ago.
	cached []*v1alpha1.GitEvent
	asked  int
}

func newModel(seed uint64) *model {
	m := &model{r: rand.New(rand.NewPCG(seed, 43)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	m.pull, m.limit = seed%2 == 0, seed%4 > 1
	for i := range pushes {
		sha := fmt.Sprintf("%040x", i+1)
		if m.r.IntN(4) == 0 && i > 1 && i < pushes-1 { // back to a commit from before
			sha = m.commit[m.r.IntN(i)]
		}
		m.commit = append(m.commit, sha)
		m.at = append(m.at, m.now)
		m.pass(3)
	}
	return m
}

func (m *model) pass(seconds int) {
	m.now = m.now.Add(time.Duration(m.r.IntN(seconds+1)) * time.Second)
}

// tip is what one of the service's replicas has: it may have missed the last pushes.
func (m *model) tip() (string, error) {
	m.asked++
	then := m.now.Add(-time.Duration(m.r.IntN(20)) * time.Second)
	sha := m.commit[0]
	for i, at := range m.at {
		if !at.After(then) {
			sha = m.commit[i]
		}
	}
	return sha, nil
}

// record is a delivery; the second one of a push changes nothing.
func (m *model) record(push int) {
	name := fmt.Sprintf("push-%d", push)
	if slices.ContainsFunc(m.events, func(e *v1alpha1.GitEvent) bool { return e.Name == name }) {
		return
	}
	e := &v1alpha1.GitEvent{}
	e.Name, e.UID = name, types.UID(name)
	e.Spec.Trigger, e.Spec.Provider, e.Spec.SHA, e.Spec.BaseRef = v1alpha1.TriggerPush, "fake", m.commit[push], "refs/heads/main"
	if push > 0 {
		e.Spec.Before = m.commit[push-1]
	}
	if m.pull {
		e.Spec.Trigger, e.Spec.BaseRef, e.Spec.PullRequest = v1alpha1.TriggerPullRequest, "main", &v1alpha1.PullRequest{Number: 3}
	}
	happened := metav1.NewTime(m.at[push].Truncate(time.Second))
	e.Spec.HappenedAt, e.Spec.ReceivedAt = &happened, metav1.NewTime(m.now)
	m.events = append(m.events, e)
}

func (m *model) snapshot() (trimmed []*v1alpha1.GitEvent) {
	for _, e := range m.events {
		if e.Status.Plan == nil || lives(&e.Status.Runs[0]) {
			trimmed = append(trimmed, openevents.Trim(e))
		}
	}
	return trimmed
}

func (m *model) annotate(e *v1alpha1.GitEvent, from string, c *v1alpha1.Cancellation) {
	name, value, _ := c.CancelsAs(from)
	if e.Annotations == nil {
		e.Annotations = map[string]string{}
	}
	e.Annotations[name] = value
}

// turn is one reconcile of an event, as pkg/reconciler/gitevent does it.
func (m *model) turn(e *v1alpha1.GitEvent) {
	view := m.cached
	if m.r.IntN(3) > 0 {
		view = m.snapshot()
	}
	m.cached = m.snapshot()
	if e.Status.Plan == nil {
		e.Status.Plan = &v1alpha1.Plan{HeadSHA: e.Spec.SHA}
		e.Status.Runs = []v1alpha1.Run{{Pipeline: "build", Name: "run-of-" + e.Name, CancelInProgress: true}}
		return
	}
	run := &e.Status.Runs[0]
	notes, undecided := lineOf(e, view).heed(m.tip, m.now)
	for _, n := range notes {
		m.annotate(e, n.from, cancellation(&e.Spec, n.names, n.newest))
	}
	cancelled := e.Cancelled("build") != nil
	switch {
	case run.Creatable() && cancelled, run.UID != "" && cancelled && m.r.IntN(2) == 0: // Tekton takes its time
		run.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled}
		e.Status.Waits = nil
	case run.Creatable() && undecided == nil && m.slot(run.Name):
		run.UID, e.Status.Waits = "uid", nil
	case run.Creatable() && undecided == nil:
		e.Status.Waits = []v1alpha1.Wait{{Step: v1alpha1.StepCreate + run.Name, Reason: fault.ReasonConcurrencyLimit}}
	}
	names := replaces(e)
	if !lives(run) || len(names) == 0 {
		return
	}
	olders, _ := lineOf(e, view).olders(names, m.tip, m.now)
	for _, older := range olders {
		for _, other := range m.events {
			if other.Name == older.Name {
				m.annotate(other, e.Name, cancellation(&e.Spec, names, shaOf(e)))
			}
		}
	}
}

// slot tells whether there is room for one more run: of all that wait the first that comes gets it.
func (m *model) slot(string) bool {
	return !m.limit || !slices.ContainsFunc(m.events, func(e *v1alpha1.GitEvent) bool {
		return e.Status.Plan != nil && e.Status.Runs[0].UID != "" && e.Status.Runs[0].Result == nil
	})
}

// play delivers the pushes in any order, some of them twice, and lets any of the recorded events have a turn between.
func (m *model) play() {
	order := m.r.Perm(pushes)
	for _, push := range order {
		m.record(push)
		m.record(order[m.r.IntN(len(order))])
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

// Ten pushes to a branch, or to a pull request, delivered in any order: the run of the newest commit is the only one that is left, and
// nobody ever ended it.
func TestOnlyTheNewestOfTenPushesIsLeft(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		m := newModel(seed)
		m.play()
		left := 0
		for _, e := range m.events {
			run := e.Status.Runs[0]
			newest := e.Name == fmt.Sprintf("push-%d", pushes-1)
			if newest && (run.UID == "" || run.Result != nil || e.Cancelled("build") != nil) || !newest && run.Result == nil {
				t.Errorf("seed %d: %s of commit %s: %+v, cancelled %+v", seed, e.Name, e.Spec.SHA, run, e.Cancelled("build"))
			}
			left++
		}
		if t.Failed() {
			t.Fatalf("seed %d: %d events, pull request %t, limit %t", seed, left, m.pull, m.limit)
		}
	}
}
