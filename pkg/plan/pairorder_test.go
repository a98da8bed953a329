// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// store has the records of a push and of the event of the pull request that it moved, and what the
// Git service lists. Two planners use it, one call after the other.
type store struct {
	events []*v1alpha1.GitEvent
	pulls  []git.Pull
	now    int
}

func (s *store) Pulls(context.Context, string) ([]git.Pull, error) { return s.pulls, nil }

func (s *store) named(name string) *v1alpha1.GitEvent {
	for _, event := range s.events {
		if event.Name == name {
			return event
		}
	}
	return nil
}

func (s *store) add(in plan.Input) {
	event := &v1alpha1.GitEvent{Spec: *in.Event.Spec}
	event.Name, event.ResourceVersion = in.Event.Name, "1"
	s.events = append(s.events, event)
}

// stored changes the version.
func stored(event *v1alpha1.GitEvent) {
	n, _ := strconv.Atoi(event.ResourceVersion)
	event.ResourceVersion = strconv.Itoa(n + 1)
}

func (s *store) past(self string, turn func()) plan.Past {
	return plan.Past{
		Now: func() time.Time { return second(s.now).Time },
		RecordsOf: func(_ context.Context, subjects string) (found []history.Record, _ error) {
			turn()
			for _, event := range s.events {
				if event.Spec.Subjects() == subjects && event.Name != self {
					found = append(found, history.Record{Event: event.DeepCopy()})
				}
			}
			return found, nil
		},
		Outdate: func(_ context.Context, r history.Record, notes map[string]string) error {
			turn()
			event := s.named(r.Event.Name)
			event.Annotations = maps.Clone(notes)
			stored(event)
			return nil
		},
	}
}

// run records an event unless it is on record, and plans it until its plan can be stored, as its
// reconcile does. It calls turn before each call.
func (s *store) run(ctx context.Context, in plan.Input, turn func()) error {
	if s.named(in.Event.Name) == nil {
		s.add(in)
		turn()
	}
	for {
		read := s.named(in.Event.Name).DeepCopy()
		in.Event.Annotations = read.Annotations
		w := &env{files: []git.File{both("a")}, writers: "author"}
		sources := w.sources()
		sources.History, sources.Past = listing{w, s, turn}, s.past(in.Event.Name, turn)
		made, err := plan.Make(ctx, in, sources)
		if err != nil {
			return err
		}
		turn()
		if event := s.named(in.Event.Name); made.Wait == nil && event.ResourceVersion == read.ResourceVersion {
			event.Status.Disposition, event.Status.Plan = made.Disposition, &v1alpha1.Plan{HeadSHA: sha, At: second(s.now)}
			for _, run := range made.Runs {
				event.Status.Runs = append(event.Status.Runs, v1alpha1.Run{Pipeline: run.Pipeline, Name: run.Name})
			}
			stored(event)
			return nil
		}
	}
}

// listing is a Git service that lists what the store has.
type listing struct {
	*env
	store *store
	turn  func()
}

func (l listing) Pulls(ctx context.Context, sha string) ([]git.Pull, error) {
	l.turn()
	return l.store.Pulls(ctx, sha)
}

// interleave has two planners make their calls in an order, the first one where a bit is 0, and
// then by turns. It calls each before every call.
func interleave(order uint, each func(n int), planners [2]func(turn func()) error) error {
	var grants [2]chan struct{}
	var errs [2]error
	waits := make(chan bool) // false from one that waits for its turn, true from one that is done
	for i, planner := range planners {
		grants[i] = make(chan struct{})
		go func() {
			<-grants[i]
			errs[i] = planner(func() {
				waits <- false
				<-grants[i]
			})
			waits <- true
		}()
	}
	const bits, most = 8, 200
	done := [2]bool{}
	for n := 0; !done[0] || !done[1]; n++ {
		if n == most {
			return fmt.Errorf("not done after %d calls", most)
		}
		next := n % 2
		if n < bits {
			next = int(order >> n & 1)
		}
		if done[next] {
			next = 1 - next
		}
		each(n)
		grants[next] <- struct{}{}
		done[next] = <-waits
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// A push and the event of the pull request that it moved are planned at the same moment. One of
// them runs the pipeline, in whatever order they make their calls and whatever the Git service
// lists.
func TestOneOfAPairRunsInEveryOrderOfCalls(t *testing.T) {
	t.Parallel()
	const never = 99
	closed, moved := func(p *git.Pull) { p.Open = false }, func(p *git.Pull) { p.SHA = laterSHA }
	for name, c := range map[string]struct {
		recorded []string   // before the planners begin
		now      int        // 400: the push does not wait any more
		pulls    []git.Pull // what is listed
		until    int        // call, from which on after is listed
		after    []git.Pull
	}{
		"it is open":                        {nil, 0, []git.Pull{ownPull(nil)}, never, nil},
		"its head has moved":                {nil, 0, []git.Pull{ownPull(moved)}, never, nil},
		"it was closed":                     {nil, 0, []git.Pull{ownPull(closed)}, never, nil},
		"it is closed at the third call":    {nil, 0, []git.Pull{ownPull(nil)}, 3, []git.Pull{ownPull(closed)}},
		"it is closed at the sixth call":    {nil, 0, []git.Pull{ownPull(nil)}, 6, []git.Pull{ownPull(closed)}},
		"it is not listed":                  {[]string{"push"}, 0, nil, never, nil},
		"it is not listed from then on":     {[]string{"push"}, 0, []git.Pull{ownPull(nil)}, 4, nil},
		"it is not listed at first":         {[]string{"push"}, 0, nil, 5, []git.Pull{ownPull(nil)}},
		"the push does not wait any more":   {[]string{"push"}, 400, []git.Pull{ownPull(nil)}, never, nil},
		"nor does it, and it is not listed": {[]string{"push"}, 400, nil, never, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for order := range uint(1 << 8) {
				s := &store{pulls: c.pulls, now: c.now}
				push, own := staging(), ownEventOf4()
				push.Event.Name, push.Event.Spec.Before, own.Event.Spec.Before = "push", defaultSHA, defaultSHA
				own.Event.Spec.Actor, own.Event.Spec.ReceivedAt = "author", *second(c.now)
				if slices.Contains(c.recorded, push.Event.Name) {
					s.add(push)
				}
				err := interleave(order, func(n int) {
					if n == c.until {
						s.pulls = c.after
					}
				}, [2]func(func()) error{
					func(turn func()) error { return s.run(t.Context(), push, turn) },
					func(turn func()) error { return s.run(t.Context(), own, turn) },
				})
				runs := 0
				for _, event := range s.events {
					runs += len(event.Status.Runs)
				}
				if err != nil || runs != 1 {
					t.Fatalf("order %08b: %d run it: %v", order, runs, err)
				}
			}
		})
	}
}
