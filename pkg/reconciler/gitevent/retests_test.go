// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	tektonfake "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/fake"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/deps"
)

// earlier is the other event, which comes before "push-1" in the order of names.
const earlier = "comment-0"

// A stage runs several processes one at a time. Before each call to the API server it chooses by
// lot which process goes on.
type stage struct {
	*env
	*rand.Rand
	at    chan int // a process is before a call, or over
	goOn  []chan struct{}
	over  []bool
	trace []string
	// late is recorded when the other process is somewhere in its work.
	late *v1alpha1.GitEvent
}

// plays plans each of some events in its own process until all are planned. It returns false if
// that takes too long.
func (s *stage) plays(events ...string) bool {
	s.at, s.over = make(chan int), make([]bool, len(events))
	for range events {
		s.goOn = append(s.goOn, make(chan struct{}))
	}
	for i, event := range events {
		go s.play(i, event)
	}
	for range events { // each is before its first step
		<-s.at
	}
	for range 4000 {
		var left []int
		for i := range events {
			if !s.over[i] {
				left = append(left, i)
			}
		}
		if len(left) == 0 {
			return true
		}
		s.goOn[left[s.IntN(len(left))]] <- struct{}{}
		<-s.at
	}
	return false
}

// step waits until the process may go on.
func (s *stage) step(i int) {
	s.at <- i
	<-s.goOn[i]
}

func (s *stage) play(i int, event string) {
	s.step(i)
	if s.late != nil && s.late.Name == event {
		for range s.IntN(25) {
			s.step(i)
		}
		s.must(s.own.Tracker().Add(s.late))
	}
	reconcile := s.actor(i)
	for s.eventNamed(event).Status.Plan == nil {
		reconcile(event)
		s.clock.SetTime(s.clock.Now().Add(time.Second))
	}
	s.over[i] = true
	s.at <- i
}

// actor returns a process whose calls to the API server are steps.
func (s *stage) actor(i int) (reconcile func(event string)) {
	w := s.env
	own, tekton, kube := fake.NewSimpleClientset(), tektonfake.NewSimpleClientset(), kubefake.NewSimpleClientset()
	step := func(action clienttesting.Action) (bool, k8sruntime.Object, error) {
		s.step(i)
		s.trace = append(s.trace, fmt.Sprintf("%d %s %s", i, action.GetVerb(), action.GetResource().Resource))
		return false, nil, nil
	}
	tekton.PrependReactor("*", "*", clienttesting.ObjectReaction(w.tekton.Tracker()))
	tekton.PrependReactor("create", "pipelineruns", w.identify)
	own.PrependReactor("*", "*", w.version(w.own.Tracker()))
	kube.PrependReactor("*", "*", clienttesting.ObjectReaction(w.kube.Tracker()))
	own.PrependReactor("*", "*", step)
	c := newCaches()
	r := w.newProcess(c, deps.Cluster{
		Plumbline: own.PlumblineV1alpha1(),
		PaC:       own.PipelinesascodeV1alpha1(),
		Tekton: deps.Tekton{
			TektonV1Interface: tekton.TektonV1(),
		},
		Kube: deps.Kube{CoreV1Interface: kube.CoreV1(), Logs: kube.CoreV1()},
	}, fmt.Sprint("actor-", i), func(string, time.Duration) {})
	return func(event string) {
		w.fill(c)
		_ = r.Reconcile(w.t.Context(), system+"/"+event)
	}
}

// retested returns an env with a pull request whose one pipeline has failed, and two events that
// ask for a retest, "push-1" and earlier: a comment each, or a re-run request.
func retested(t *testing.T, comment string, presses ...bool) *env {
	t.Helper()
	w := commented(t, comment, annotated("hello", "on-event: pull_request", "on-target-branch: main"))
	w.git.complete = func(e *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
		e.SHA, e.BaseRef, e.HeadRef, e.HeadURL = sha, "main", "topic", "https://git.example/acme/app"
		e.PullRequest.HeadProjectID, e.PullRequest.Author = 5, "author"
		return e, nil
	}
	w.addEvent("first", "opened", -time.Hour, func(e *v1alpha1.GitEvent) {
		e.Status.Phase, e.Status.Disposition = v1alpha1.PhaseSettled, v1alpha1.DispositionRuns
		e.Status.Plan = &v1alpha1.Plan{HeadSHA: sha, Reason: "Selected"}
		e.Status.Runs = []v1alpha1.Run{{Pipeline: "hello", Namespace: tenant, Name: "first-run", UID: "1",
			Result: &v1alpha1.Result{Outcome: v1alpha1.OutcomeFailed}}}
	})
	now := metav1.NewTime(w.clock.Now())
	w.edit(func(e *v1alpha1.GitEvent) { e.Spec.ReceivedAt, e.Spec.HappenedAt = now, &now })
	second := w.event()
	second.Name, second.UID, second.ResourceVersion = earlier, "second-uid", ""
	for i, e := range []*v1alpha1.GitEvent{w.event(), second} {
		if presses[i] {
			e.Spec.Comment, e.Spec.PullRequest, e.Spec.SHA, e.Spec.EventType = nil, nil, sha, "push"
			e.Spec.Rerun = &v1alpha1.Rerun{Check: "Pipelines as Code CI / hello", ExternalID: "first-run", Pulls: []int64{3}}
		}
		e.Labels = map[string]string{plumbline.SubjectLabel: e.Spec.Subject()}
		if e.Name == earlier {
			w.must(w.own.Tracker().Add(e))
			continue
		}
		w.replaceEvent(e)
	}
	return w
}

// Two events that ask for a retest are planned at the same moment, by processes whose calls come in
// any order: the failed pipeline runs once. One event may be recorded while the other one is about
// to be planned, and still be the earlier one.
func TestConcurrentRetestsRunOnce(t *testing.T) {
	t.Parallel()
	for name, presses := range map[string][]bool{"two comments": {false, false}, "two presses": {true, true},
		"a comment and a press": {false, true}} {
		for seed := range uint64(150) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				s := &stage{env: retested(t, "/retest", presses...), Rand: rand.New(rand.NewPCG(14, seed))}
				if seed%2 == 0 {
					s.late = s.eventNamed(earlier)
					s.must(s.own.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), system, earlier))
				}
				if !s.plays("push-1", earlier) {
					t.Fatalf("they do not come to an end: %v", s.trace[max(0, len(s.trace)-60):])
				}
				runs := 0
				for _, name := range []string{"push-1", earlier} {
					runs += len(s.eventNamed(name).Status.Runs)
				}
				if runs != 1 {
					t.Errorf("%d runs of what has failed: %v", runs, s.trace)
				}
			})
		}
	}
}
