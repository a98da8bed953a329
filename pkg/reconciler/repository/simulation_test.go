// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"knative.dev/pkg/apis"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// simulation is one Repository with a limit. Two processes give slots and two create runs, each
// making one call at a time in an order drawn from a seed. Each has caches that lag, forgets
// everything when it is killed, and may wrongly assume that it leads.
type simulation struct {
	*testing.T
	random  *rand.Rand
	events  map[string]*v1alpha1.GitEvent // as the API server has them; a settled one is a stub
	started int
	giving  []*env                    // share the API server of the first one
	seen    []*pacv1alpha1.Repository // the Repository as each process that creates knows it
	flights []flight
	running map[string]string // the events of the PipelineRuns that are there and not over
	faults  bool
}

// flight is a create between its check and the API server.
type flight struct {
	event, run string
	until      time.Time
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	limit := 2
	app := repo("one", "app", appURL)
	app.Spec.ConcurrencyLimit = &limit
	first := newEnv(t, app, claimed(appURL, "one", "app", nil))
	second := newEnv(t)
	second.client, second.r.client, second.tekton, second.r.tekton = first.client, first.client, first.tekton,
		first.tekton.TektonV1()
	s := &simulation{
		T: t, random: rand.New(rand.NewPCG(seed, 1)), events: map[string]*v1alpha1.GitEvent{}, running: map[string]string{},
		giving: []*env{first, second}, faults: true,
	}
	s.seen = []*pacv1alpha1.Repository{app, app}
	first.client.PrependReactor("update", "repositories", s.guard)
	first.client.PrependReactor("get", "gitevents", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.GetAction).GetName()
		if s.lucky(10) {
			return true, nil, apierrors.NewServiceUnavailable("for a moment")
		}
		if event := s.events[name]; event != nil {
			return true, event.DeepCopy(), nil
		}
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "gitevents"}, name)
	})
	return s
}

// lucky returns true for one call in n at random, as long as there are faults.
func (s *simulation) lucky(n int) bool { return s.faults && s.random.IntN(n) == 0 }

// guard is the API server's optimistic lock. It checks that no write gives more slots than the
// limit of the version that it replaces.
func (s *simulation) guard(action clienttesting.Action) (bool, runtime.Object, error) {
	next := action.(clienttesting.UpdateAction).GetObject().(*pacv1alpha1.Repository).DeepCopy()
	is := s.repository()
	if next.ResourceVersion != is.ResourceVersion {
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "repositories"}, "app", errors.New("changed"))
	}
	if before, after := len(is.Status.Slots()), len(next.Status.Slots()); after > before &&
		after > *is.Spec.ConcurrencyLimit {
		s.Errorf("%d slots of %d are given", after, *is.Spec.ConcurrencyLimit)
	}
	next.Spec = is.Spec
	s.store(next)
	if s.lucky(10) {
		return true, nil, apierrors.NewTimeoutError("it was applied, and the answer is lost", 1)
	}
	return true, next, nil
}

func (s *simulation) store(r *pacv1alpha1.Repository) {
	r.ResourceVersion = fmt.Sprint("v", s.random.Uint64())
	if err := s.giving[0].client.Tracker().Update(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), r,
		r.Namespace); err != nil {
		s.Fatal(err)
	}
}

// repository is read from the store itself: a fake client waits for the call that it is in.
func (s *simulation) repository() *pacv1alpha1.Repository {
	obj, err := s.giving[0].client.Tracker().Get(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), "one", "app")
	if err != nil {
		s.Fatal(err)
	}
	return obj.(*pacv1alpha1.Repository).DeepCopy()
}

func (s *simulation) pipelineRun(name string) *pipelinev1.PipelineRun {
	run, err := s.giving[0].tekton.TektonV1().PipelineRuns("one").Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return run
}

// any returns a random run of the open events for which is returns true; nil if there is none.
func (s *simulation) any(is func(*v1alpha1.GitEvent, *v1alpha1.Run) bool) (event *v1alpha1.GitEvent,
	run *v1alpha1.Run) {
	n := 0
	for i := range s.started { // by number: the order of a map would not be the seed's
		e := s.events[fmt.Sprint("e", i)]
		if e == nil || e.Settled() {
			continue
		}
		for j := range e.Status.Runs {
			if !is(e, &e.Status.Runs[j]) {
				continue
			}
			if n++; s.random.IntN(n) == 0 {
				event, run = e, &e.Status.Runs[j]
			}
		}
	}
	return event, run
}

func creatable(_ *v1alpha1.GitEvent, run *v1alpha1.Run) bool { return run.Creatable() }

// receive records an event with one to three runs.
func (s *simulation) receive() {
	e := waiting(fmt.Sprint("e", s.started))
	e.Spec.ReceivedAt = metav1.NewTime(s.giving[0].clock.Now())
	for j := range 1 + s.random.IntN(3) {
		e.Status.Runs = append(e.Status.Runs, v1alpha1.Run{Namespace: "one", Name: fmt.Sprint(e.Name, "-", j)})
	}
	s.events[e.Name] = e
	s.started++
}

// give makes one reconcile of a process that gives slots, which may have just started.
func (s *simulation) give() {
	w := s.giving[s.random.IntN(2)]
	if s.random.IntN(2) == 0 || !s.faults {
		s.catchUp(w)
	}
	if s.lucky(8) {
		w.restart()
	}
	_ = w.r.Reconcile(context.Background(), "one/app")
}

// catchUp updates the caches.
func (s *simulation) catchUp(w *env) {
	w.catchUp()
	w.events = nil
	var runs []any
	for i := range s.started {
		if e := s.events[fmt.Sprint("e", i)]; e != nil && !e.Settled() {
			w.events = append(w.events, e.DeepCopy())
			for _, run := range e.Status.Runs {
				if live := s.pipelineRun(run.Name); live != nil {
					runs = append(runs, live)
				}
			}
		}
	}
	if err := w.runs().Replace(runs, ""); err != nil {
		s.Fatal(err)
	}
}

// decide makes the decision of the create step, with a live event and the cached Repository.
func (s *simulation) decide() {
	i := s.random.IntN(2)
	if s.random.IntN(3) == 0 || !s.faults {
		s.seen[i] = s.repository()
	}
	e, run := s.any(func(e *v1alpha1.GitEvent, run *v1alpha1.Run) bool {
		return run.Creatable() && s.seen[i].Status.HasSlot(systemNS, e.Name, run.Name)
	})
	if run != nil {
		s.flights = append(s.flights, flight{e.Name, run.Name, s.giving[0].clock.Now().Add(inFlight - 10*time.Second)})
	}
}

// land ends a create: it succeeds, is refused, never arrives, or succeeds without an answer.
func (s *simulation) land() {
	if len(s.flights) == 0 {
		return
	}
	i := s.random.IntN(len(s.flights))
	f := s.flights[i]
	if !s.giving[0].clock.Now().After(f.until) && !s.lucky(5) && s.pipelineRun(f.run) == nil &&
		!s.created(f.event, f.run) {
		run := &pipelinev1.PipelineRun{
			ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: f.run, UID: types.UID("uid-" + f.run)},
		}
		if err := s.giving[0].tekton.Tracker().Add(run); err != nil {
			s.Fatal(err)
		}
		s.running[f.run] = f.event
	}
	s.flights = append(s.flights[:i], s.flights[i+1:]...)
	// else the process is killed before it can record it
	if e := s.events[f.event]; e != nil && !e.Settled() && !s.lucky(4) {
		s.record(e, f.run)
	}
}

// created reports whether a run was created before and deleted: its result is recorded
// (docs/adr/0013), and no other is created.
func (s *simulation) created(event, run string) bool {
	e := s.events[event]
	if e == nil {
		return false
	}
	known := runOf(pacv1alpha1.Slot{Run: run, Event: event}, []*v1alpha1.GitEvent{e})
	return known == nil || known.UID != ""
}

func (s *simulation) record(e *v1alpha1.GitEvent, name string) {
	for i := range e.Status.Runs {
		if run, live := &e.Status.Runs[i], s.pipelineRun(name); run.Name == name && live != nil && run.UID == "" &&
			run.Result == nil {
			run.UID = live.UID
		}
	}
}

// end finishes a PipelineRun, or deletes it.
func (s *simulation) end() {
	names := slices.Sorted(maps.Keys(s.running))
	if len(names) == 0 {
		return
	}
	name := names[s.random.IntN(len(names))]
	live := s.pipelineRun(name)
	delete(s.running, name)
	if s.lucky(6) {
		_ = s.giving[0].tekton.Tracker().Delete(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), "one", name)
		return
	}
	live.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionTrue})
	if err := s.giving[0].tekton.Tracker().Update(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), live,
		"one"); err != nil {
		s.Fatal(err)
	}
}

// observe records the result of a run, and settles its event when all are finished.
func (s *simulation) observe() {
	e, run := s.any(func(_ *v1alpha1.GitEvent, run *v1alpha1.Run) bool { return run.Result == nil && run.Refused == nil })
	if run == nil {
		return
	}
	s.record(e, run.Name)
	if live := s.pipelineRun(run.Name); run.UID != "" && (live == nil || live.IsDone()) {
		run.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeSucceeded}
	}
	if run.Creatable() && s.lucky(12) { // it is cancelled, or refused
		if run.Result = (&v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled}); s.random.IntN(2) == 0 && !s.flies(run.Name) {
			run.Result, run.Refused = nil, &v1alpha1.Refusal{Reason: "Denied"}
		}
	}
	for _, other := range e.Status.Runs {
		if other.Result == nil && other.Refused == nil {
			return
		}
	}
	e.Status.Phase = v1alpha1.PhaseSettled
}

func (s *simulation) flies(run string) bool {
	for _, f := range s.flights {
		if f.run == run {
			return true
		}
	}
	return false
}
